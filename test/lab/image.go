// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

const (
	module = "github.com/lowlatency-dev/lowlatency-operator"
	// keyFile and disk are in every image.
	keyFile  = "id_ed25519"
	diskFile = "disk.raw"
	// buildLimit bounds the build of an image: a minute on two idle cores with a near mirror.
	buildLimit = 30 * time.Minute
)

// Image is what machines boot from. It is never written to: each machine has a copy-on-write disk over it.
type Image struct {
	// Dir holds the root disk, the kernels, their initial memory disks and the keys.
	Dir string
	// user opens the machine's shell; machine is what it must answer with.
	user    ssh.Signer
	machine ssh.PublicKey
}

// OpenImage returns the image of this version of hack/lab/image, and builds it first when this user's cache does
// not hold it. It reports what it does on progress. The error names the Debian packages that are missing.
func OpenImage(ctx context.Context, progress io.Writer) (*Image, error) {
	if err := Requirements(); err != nil {
		return nil, err
	}
	dir, err := built(ctx, "image", writeKeys, progress)
	if err != nil {
		return nil, err
	}
	return loadImage(dir)
}

// built returns the folder that hack/lab/<name>/build.sh fills, in this user's cache, and runs the script first when
// the cache has nothing of this version of it. Prepare puts into the folder what the script needs.
func built(ctx context.Context, name string, prepare func(dir string) error, progress io.Writer) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	scripts := filepath.Join(root, "hack", "lab", name)
	version, err := hashTrees(scripts, filepath.Join(root, "hack", "lab", "debian.sh"))
	if err != nil {
		return "", err
	}
	cache, err := apiserver.CacheFolder()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "lab", name+"-"+version)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, build{name: name, script: filepath.Join(scripts, "build.sh"), dir: dir, prepare: prepare, progress: progress}.run(ctx)
}

// Requirements tells which programs are missing, and the Debian packages that bring them.
func Requirements() error {
	programs := []struct{ name, debian string }{
		{"qemu-system-x86_64", "qemu-system-x86"}, {"qemu-img", "qemu-utils"},
		{"mmdebstrap", "mmdebstrap"}, {"mke2fs", "e2fsprogs"},
	}
	var missing, packages []string
	for _, program := range programs {
		if _, err := exec.LookPath(program.name); err != nil {
			missing, packages = append(missing, program.name), append(packages, program.debian)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the lab needs %s: apt-get install --no-install-recommends %s",
		strings.Join(missing, ", "), strings.Join(packages, " "))
}

// build is one part of the lab that a script makes.
type build struct {
	name, script, dir string
	prepare           func(dir string) error
	progress          io.Writer
}

// run makes the folder, which appears only when it is complete. Runs at the same time take turns.
func (b build) run(ctx context.Context) (err error) {
	parent := filepath.Dir(b.dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("making the lab's cache: %w", err)
	}
	release, err := takeTurn(ctx, parent)
	if err != nil {
		return err
	}
	defer release()
	if _, err := os.Stat(b.dir); err == nil {
		return nil
	}
	staging, err := os.MkdirTemp(parent, ".building-")
	if err != nil {
		return fmt.Errorf("making the lab's cache: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	if err := b.prepare(staging); err != nil {
		return err
	}
	if err := b.runScript(ctx, staging); err != nil {
		return err
	}
	if err := os.Rename(staging, b.dir); err != nil {
		return fmt.Errorf("putting the lab's %s into the cache: %w", b.name, err)
	}
	return nil
}

// takeTurn waits for the lock of a folder.
func takeTurn(ctx context.Context, dir string) (release func(), err error) {
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the lab's cache: %w", err)
	}
	for {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			// Closing gives the lock back; there is nothing to do about an error.
			return func() { _ = lock.Close() }, nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return nil, fmt.Errorf("waiting for another build of the lab: %w", errors.Join(err, lock.Close()))
		}
	}
}

func (b build) runScript(ctx context.Context, staging string) error {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	var log bytes.Buffer
	command := exec.CommandContext(ctx, b.script, staging)
	command.Stdout, command.Stderr = &log, &log
	// The build has children of its own, which end with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	start := time.Now()
	stop := every(10*time.Second, func() {
		report(b.progress, "%s: building, %.0f s (once per user and version of hack/lab/%s)", b.name, time.Since(start).Seconds(), b.name)
	})
	err := command.Run()
	stop()
	if err != nil {
		return fmt.Errorf("building the lab's %s with %s: %w\n%s", b.name, b.script, err, lastLines(log.String(), 25))
	}
	report(b.progress, b.name+": built in %.0f s", time.Since(start).Seconds())
	return nil
}

// writeKeys makes the key that opens the shell of every machine with this image.
func writeKeys(dir string) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("making the lab's key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "lab")
	if err != nil {
		return fmt.Errorf("making the lab's key: %w", err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return fmt.Errorf("making the lab's key: %w", err)
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, keyFile), pem.EncodeToMemory(block), 0o600),
		os.WriteFile(filepath.Join(dir, "authorized_keys"), ssh.MarshalAuthorizedKey(key), 0o644))
	if err != nil {
		return fmt.Errorf("writing the lab's key: %w", err)
	}
	return nil
}

func loadImage(dir string) (*Image, error) {
	private, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("reading the lab's key: %w", err)
	}
	user, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("reading the lab's key in %s: %w", dir, err)
	}
	public, err := os.ReadFile(filepath.Join(dir, "host_key.pub"))
	if err != nil {
		return nil, fmt.Errorf("reading the machine's key: %w", err)
	}
	machine, _, _, _, err := ssh.ParseAuthorizedKey(public)
	if err != nil {
		return nil, fmt.Errorf("reading the machine's key in %s: %w", dir, err)
	}
	return &Image{Dir: dir, user: user, machine: machine}, nil
}

func (i *Image) file(name string) string { return filepath.Join(i.Dir, name) }

// moduleRoot asks the go command, which knows it in any package.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("locating module %s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// hashTrees names folders and files by all that they hold: paths and content.
func hashTrees(roots ...string) (string, error) {
	sum := sha256.New()
	for _, root := range roots {
		if err := addTree(sum, root); err != nil {
			return "", fmt.Errorf("reading the lab's scripts: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

func addTree(sum io.Writer, root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(sum, "%q %d\n%s", filepath.ToSlash(name), len(content), content)
		return err
	})
}
