// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	plantedPod       = "6f1e9a52-0c3b-4d8e-9f00-1234567890ab"
	plantedContainer = "4a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
	plantedMAC       = "0a1b2c3d4e5f"
)

// plant puts names of every kind into the files of a host. What belongs to nobody but this host is called secret.
func plant(t *testing.T, root string) {
	t.Helper()
	group := "/kubepods.slice/kubepods-pod" + strings.ReplaceAll(plantedPod, "-", "_") + ".slice"
	container := group + "/crio-" + plantedContainer + ".scope"
	stat := func(pid int, name string, cpu int) string {
		return fmt.Sprintf("%d (%s) R 1 %s4194304 %s1 %s%d\n", pid, name, strings.Repeat("0 ", 4), strings.Repeat("0 ", 10), strings.Repeat("0 ", 18), cpu)
	}
	status := "Name:\tsecret-program\nUid:\t31337\t31337\nGroups:\t31337\nCpus_allowed_list:\t0-15\nMems_allowed_list:\t0\nvoluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t1\n"
	for name, content := range map[string]string{
		"proc/sys/kernel/hostname": "secret-host\n",
		"proc/version":             "Linux version 5.14.0-570.49.1.el9_6.x86_64 (secret-builder@secret-site) #1 SMP\n",
		"proc/700/stat":            stat(700, "secret-program", 5), "proc/700/status": status, "proc/700/comm": "secret-program\n",
		"proc/700/cgroup":  "0::/user.slice/user-31337.slice/session-7.scope\n",
		"proc/700/cmdline": "secret-program\x00--password=secret-password\x00", "proc/700/environ": "TOKEN=secret-token\x00",
		"proc/701/stat": stat(701, "secret-daemon", 6), "proc/701/status": status,
		"proc/701/cgroup": "0::/system.slice/secret-daemon.service\n",
		"proc/702/stat":   stat(702, "secret-trader", 7), "proc/702/status": status,
		"proc/702/cgroup": "0::" + container + "\n",
		"proc/703/comm":   "irqbalance\n", "proc/703/environ": "IRQBALANCE_ARGS=--policyscript=/home/secret-user/x\x00TOKEN=secret-token\x00",
		"etc/sysconfig/irqbalance": "# secret-admin was here\nIRQBALANCE_ARGS=--banscript=/secret\nIRQBALANCE_BANNED_CPULIST=4-7\n",
		"proc/1/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
			"eno1\t00000000\t4D0200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\nsecret0\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n",
		"proc/1/net/ipv6_route": strings.Repeat("0", 32) + " 00 " + strings.Repeat("0", 32) + " 00 20010db8000000000000000000000077 00000400 00000001 00000000 00000003 enx" + plantedMAC + "\n" +
			"20010db8000000000000000000000000 40 " + strings.Repeat("0", 32) + " 00 " + strings.Repeat("0", 32) + " 00000400 00000001 00000000 00000001 eno1\n",
		"var/lib/kubelet/config.yaml": "kind: KubeletConfiguration\n# secret-admin\nclusterDNS: [192.0.2.53]\nclusterDomain: secret.example\n" +
			"staticPodURLHeader: {Authorization: [secret-token]}\nproviderID: aws:///secret\ncpuManagerPolicy: static\nmaxPods: 250\n",
		"var/lib/kubelet/cpu_manager_state": `{"policyName":"static","defaultCpuSet":"0-6","entries":{"` + plantedPod + `":{"secret-container":"7"}},"checksum":31337}`,
		"proc/swaps":                        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/home/secret-user/swap                  file\t\t1024\t\t512\t\t-2\n",
		"sys/kernel/tracing/instances/secret-instance/current_tracer": "nop\n",
		"sys/kernel/tracing/instances/secret-instance/set_event":      "probe_secret:start\nsched:sched_switch\n",
		"sys/fs/cgroup" + container + "/cpuset.cpus.effective":        "7\n",
		"sys/fs/cgroup" + container + "/cpu.max":                      "max 100000\n",
		"sys/fs/cgroup" + group + "/cpu.max":                          "max 100000\n",
		"sys/class/net/enx" + plantedMAC + "/type":                    "1\n",
		"run/lowlatency/afxdp/reports/pool":                           "* the node 192.0.2.9 (2001:db8::77, 0a:1b:2c:3d:4e:5f) is odd\n",
	} {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.RemoveAll(file), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	unit := filepath.Join(root, "etc/systemd/system/fwupd-refresh.timer")
	if err := errors.Join(os.MkdirAll(filepath.Dir(unit), 0o755), os.RemoveAll(unit), os.Symlink("/opt/secret/x.timer", unit)); err != nil {
		t.Fatal(err)
	}
	line := filepath.Join(root, "proc/cmdline")
	text, err := os.ReadFile(line)
	if err != nil {
		t.Fatal(err)
	}
	more := " ip=192.0.2.77::192.0.2.1:255.255.255.0:secret-host:enx" + plantedMAC + ":none nameserver=2001:db8::53 rd.iscsi.password=secret-password" +
		" secret_token=secret-token secret-word root=UUID=secret console=ttyS0 -- secret-init"
	if err := os.WriteFile(line, []byte(strings.TrimSpace(string(text))+more+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// unpacked is all that an archive holds: names, targets of links and contents.
func unpacked(t *testing.T, file string) string {
	t.Helper()
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	packed, err := gzip.NewReader(opened)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	archive := tar.NewReader(packed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		content, readErr := io.ReadAll(archive)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s -> %s: %s\n", header.Name, header.Linkname, content)
	}
}

// TestARedactedSnapshotTellsNoNames plants names of every kind and finds none of them; and what is nobody's business is in no
// snapshot at all.
func TestARedactedSnapshotTellsNoNames(t *testing.T) {
	root, folder := tree(t, small("epyc")), t.TempDir()
	plant(t, root)
	plain, redacted := filepath.Join(folder, "plain.tar.gz"), filepath.Join(folder, "redacted.tar.gz")
	for _, args := range [][]string{{"-o", plain}, {"--redact", "-o", redacted}, {"--redact", "-o", redacted + "2", "--root", plain}} {
		if got := run(t, "", append([]string{"snapshot", "--root", root}, args...)...); got.code != ExitOK {
			t.Fatalf("snapshot: %+v", got)
		}
	}
	const gateway, gateway6 = "4D0200C0", "20010db8000000000000000000000077"
	never := []string{
		"secret-password", "--password", "secret-admin", "secret-builder", "secret-site", "TOKEN", "Authorization", "aws:", "secret.example",
		"192.0.2.53", "--policyscript", "--banscript", "Uid", "Groups", gateway, gateway6,
	}
	for _, secret := range never {
		if strings.Contains(strings.ReplaceAll(unpacked(t, plain), "rd.iscsi.password=secret-password", ""), secret) {
			t.Errorf("a snapshot holds %s", secret)
		}
	}
	for _, file := range []string{redacted, redacted + "2"} {
		all := unpacked(t, file)
		for _, secret := range append(never, "secret", "31337", "192.0.2", "000200C0", "20010db8", "2001:db8", plantedMAC, "0a:1b:2c", plantedPod,
			strings.ReplaceAll(plantedPod, "-", "_"), plantedContainer, "session-7", "epyc") {
			if at := strings.Index(all, secret); at >= 0 {
				t.Errorf("a redacted snapshot holds %s: %q", secret, all[max(0, at-60):min(len(all), at+60)])
			}
		}
	}
	expectTheSame(t, plain, redacted)
}

// expectTheSame compares what the commands say of both, but for names.
func expectTheSame(t *testing.T, plain, redacted string) {
	t.Helper()
	names := strings.NewReplacer("secret-program", "program-005", "secret-daemon.service", "unit-005.service", "secret-daemon", "program-004",
		"secret-trader", "program-006", "session-7.scope", "unit-006.scope", "secret-container", "container-001",
		plantedPod, "00000000-0000-0000-0000-000000000002", "/home/secret-user/swap", "/area-001", "secret-instance", "instance-001",
		"probe_secret:start", "probe_001", "secret-host", "redacted")
	for _, command := range [][]string{{"check", "-o", "json"}, {"check"}, {"plan", "-o", "json"}, {"plan"}} {
		command = append(command, "-f", write(t, "profile.yaml", profileText))
		want := run(t, "", append(command, "--root", "a="+plain)...)
		got := run(t, "", append(command, "--root", "a="+redacted)...)
		if want.code != got.code || got.code == ExitUsage {
			t.Errorf("%v: exit code %d of the redacted snapshot, %d of the other: %s", command, got.code, want.code, got.err)
		}
		fold := func(text string) string { return strings.Join(strings.Fields(names.Replace(text)), " ") }
		if diff := cmp.Diff(strings.SplitAfter(fold(want.out), ". "), strings.SplitAfter(fold(got.out), ". ")); diff != "" {
			t.Errorf("%v (-plain +redacted):\n%s", command, diff)
		}
	}
	if out := run(t, "", "check", "-f", write(t, "profile.yaml", profileText), "--root", "a="+plain).out; !strings.Contains(out, "secret-program") ||
		!strings.Contains(out, "secret-user") {
		t.Errorf("the checks name neither a program nor a swap file, so that they prove nothing:\n%s", out)
	}
}
