// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package report

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/supportreport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

const (
	// repository is the context of the Dockerfile.
	repository = "../.."
	dockerfile = "config/must-gather/Dockerfile"
	// account is where a container finds its account, below which /var/run leads (kubernetes.io/docs, "Accessing the Kubernetes API from a Pod").
	account = "run/secrets/kubernetes.io/serviceaccount"
	// wrapper runs a command as oc does: by a shell in a session of its own, beside a look at how full the volume is. It fails when a program is
	// missing that oc looks for, without which oc would do with less.
	wrapper = `set -e
for program in awk df du pkill ps rsync sed setsid sleep sync tar; do command -v $program >/dev/null; done
df -P /must-gather | awk 'NR==2 {print $5}'
setsid -w bash <<END
$*
END
sync`
)

// TestMustGatherImage puts what the Dockerfile of must-gather copies onto a base of Debian's packages, and runs it there as oc adm must-gather
// does: by an account of the cluster, and without any other file of this machine. The base of OpenShift is in a registry only.
func TestMustGatherImage(t *testing.T) {
	environment := newEnvironment(t)
	root := t.TempDir()
	output(t, "bash", "-c", `set -euo pipefail; . hack/lab/debian.sh; debootstrap "$0" procps,rsync "$(apt_lines)" 2>&1`, root)
	copyAsTheDockerfileDoes(t, root)
	variables := logIn(t, environment, root)

	asItIs := gatherIn(t, root, variables, "/usr/bin/gather")
	if diff := cmp.Diff(reportFiles(), namesOf(asItIs)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	with(t, asItIs, nodeName, "nohz_full=2-7")
	without(t, asItIs, "secret-password", "uuid-of-the-machine")
	without(t, gatherIn(t, root, variables, "gather --redact"), "secret-password", nodeName, "tradefloor-7", "192.0.2.77")
}

// output runs a program in the repository, which must succeed.
func output(t *testing.T, name string, arguments ...string) []byte {
	t.Helper()
	var said bytes.Buffer
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir, command.Stderr = repository, &said
	text, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s%s", command, err, text, &said)
	}
	return text
}

// copyAsTheDockerfileDoes builds what the first stage of the Dockerfile builds, and copies as the last one does.
func copyAsTheDockerfileDoes(t *testing.T, root string) {
	t.Helper()
	workspace := t.TempDir()
	t.Setenv("CGO_ENABLED", "0")
	output(t, "go", "build", "-trimpath", "-o", workspace+"/", "./cmd/kubectl-lowlatency")
	notices := output(t, "go", "-C", "hack/image", "run", "./thirdparty", "-texts", "../..", "./cmd/kubectl-lowlatency")
	check(t, os.WriteFile(filepath.Join(workspace, "THIRD-PARTY"), notices, 0o600))
	content, err := os.ReadFile(filepath.Join(repository, dockerfile))
	check(t, err)
	_, last, _ := strings.Cut(string(content), "\nFROM ${BASE_IMAGE}\n")
	copied := 0
	for line := range strings.Lines(last) {
		words := strings.Fields(strings.ReplaceAll(line, "/workspace", workspace))
		if len(words) < 3 || words[0] != "COPY" {
			continue
		}
		to := filepath.Join(root, words[len(words)-1])
		check(t, os.MkdirAll(filepath.Dir(to), 0o755))
		output(t, "cp", words[len(words)-2], to)
		copied++
	}
	if copied < 4 || !strings.Contains(last, `ENTRYPOINT ["/usr/bin/gather"]`) {
		t.Fatalf("%s copies %d files in its last stage", dockerfile, copied)
	}
}

// logIn makes an account with the rights that oc gives to that of the pod, mounts it, and returns the variables of a container.
func logIn(t *testing.T, environment *apiserver.Environment, root string) []string {
	t.Helper()
	const name = "openshift-must-gather-abcde"
	user := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}}
	check(t, environment.Client().Create(t.Context(), namespace(name)))
	check(t, environment.Client().Create(t.Context(), user))
	check(t, environment.Client().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: user.Name}},
	}))
	token := &authenticationv1.TokenRequest{}
	check(t, environment.Client().SubResource("token").Create(t.Context(), user, token))
	for file, content := range map[string][]byte{"token": []byte(token.Status.Token), "ca.crt": environment.Config().CAData, "namespace": []byte(name)} {
		check(t, os.MkdirAll(filepath.Join(root, account), 0o755))
		check(t, os.WriteFile(filepath.Join(root, account, file), content, 0o600))
	}
	address, err := url.Parse(environment.Config().Host)
	check(t, err)
	if address.Host == "" {
		address.Host = environment.Config().Host
	}
	return []string{"KUBERNETES_SERVICE_HOST=" + address.Hostname(), "KUBERNETES_SERVICE_PORT=" + address.Port()}
}

// gatherIn runs a command of must-gather, and copies what it has written, by its own tar.
func gatherIn(t *testing.T, root string, variables []string, command string) map[string]string {
	t.Helper()
	check(t, os.RemoveAll(filepath.Join(root, "must-gather")))
	check(t, os.Mkdir(filepath.Join(root, "must-gather"), 0o755))
	inside := append([]string{"--mount", "sh", "-c", `mount -t proc none "$0/proc" && exec chroot "$0" env -i PATH=/usr/bin:/bin "$@"`, root}, variables...)
	output(t, "unshare", append(inside, "/bin/bash", "-c", wrapper, "oc", command)...)
	files := map[string]string{}
	for entries := tar.NewReader(bytes.NewReader(output(t, "chroot", root, "tar", "-C", "/must-gather", "-cf", "-", "."))); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		check(t, err)
		content, err := io.ReadAll(entries)
		check(t, err)
		if header.Typeflag == tar.TypeReg {
			files[strings.TrimPrefix(header.Name, "./"+supportreport.Folder+"/")] = string(content)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
