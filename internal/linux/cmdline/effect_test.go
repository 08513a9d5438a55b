// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// intel has 80 CPUs, arm 8.
func intel() cmdline.Machine { return cmdline.Machine{Architecture: "amd64", Possible: set("0-79")} }
func arm() cmdline.Machine   { return cmdline.Machine{Architecture: "arm64", Possible: set("0-7")} }

func set(list string) cpus.Set {
	parsed, err := cpus.Parse(list)
	if err != nil {
		panic(err)
	}
	return parsed
}

// pair are two texts that mean the same on a machine, or not.
type pair struct {
	on   cmdline.Machine
	a, b string
	want bool
}

func TestSameLists(t *testing.T) {
	checkPairs(t, map[string]pair{
		"equal":                     {a: "nohz=on", b: "nohz=on", want: true},
		"another value":             {a: "nohz=on", b: "nohz=off"},
		"another name":              {a: "nohz_full=1", b: "rcu_nocbs=1"},
		"another spelling":          {a: "nohz-full=1-3", b: "nohz_full=1,2,3", want: true},
		"another name of one":       {a: "nmi-watchdog=0", b: "nmi_watchdog=0", want: true},
		"no value and an empty one": {a: "nosmt", b: "nosmt="},
		"no value and one":          {a: "nosmt", b: "nosmt=force"},
		"lists of systemd":          {a: "systemd.cpu_affinity=5,6,7", b: "systemd.cpu_affinity=5-7", want: true},
		"spaces of systemd":         {a: `systemd.cpu_affinity="5 6 7"`, b: "systemd.cpu_affinity=5-7", want: true},
		"systemd does not know N":   {on: intel(), a: "systemd.cpu_affinity=70-N", b: "systemd.cpu_affinity=70-79"},
		"flags in any order":        {a: "isolcpus=managed_irq,domain,1", b: "isolcpus=domain,managed_irq,1", want: true},
		"a flag twice":              {a: "isolcpus=domain,domain,1", b: "isolcpus=domain,1", want: true},
		"domain is implied":         {a: "isolcpus=1-2", b: "isolcpus=domain,1-2", want: true},
		"an unknown flag":           {a: "isolcpus=kthread,1-2", b: "isolcpus=1-2", want: true},
		"another flag":              {a: "isolcpus=managed_irq,1-2", b: "isolcpus=domain,1-2"},
		"not a flag":                {a: "isolcpus=managed-irq,1-2", b: "isolcpus=domain,1-2"},
		"other isolated CPUs":       {a: "isolcpus=domain,1-2", b: "isolcpus=domain,1-3"},
		"not a list":                {a: "nohz_full=x1", b: "nohz_full=x2"},
		"the last CPU":              {on: intel(), a: "nohz_full=2-N", b: "nohz_full=2-79", want: true},
		"the last CPU of another":   {on: arm(), a: "nohz_full=2-N", b: "nohz_full=2-79"},
		"the last CPU is unknown":   {a: "nohz_full=2-N", b: "nohz_full=2-79"},
		"the same unknown CPU":      {a: "nohz_full=2-N", b: "nohz-full=2-N", want: true},
		"all CPUs":                  {on: intel(), a: "rcu_nocbs=all", b: "rcu_nocbs=0-79", want: true},
		"a CPU that cannot be":      {on: intel(), a: "nohz_full=2-200", b: "nohz_full=2-79"},
		"groups of CPUs":            {on: intel(), a: "nohz_full=0-7:1/2", b: "nohz_full=0,2,4,6", want: true},
		"empty elements":            {a: "rcu_nocbs=1,,2,", b: "rcu_nocbs=1-2", want: true},
		"the boot CPU is added":     {a: "irqaffinity=1-2", b: "irqaffinity=0-2", want: true},
		"interrupts elsewhere":      {a: "irqaffinity=1-2", b: "irqaffinity=0-3"},
		"a switch":                  {a: "nohz=y", b: "nohz=1", want: true},
		"a switch in capitals":      {a: "nohz=ON", b: "nohz=on", want: true},
		"a switch the other way":    {a: "nohz=n", b: "nohz=on"},
		"not a switch":              {a: "nohz=enabled", b: "nohz=on"},
		"words are no switches":     {a: "tsc=on", b: "tsc=1"},
	})
}

func TestSameValues(t *testing.T) {
	checkPairs(t, map[string]pair{
		"a hexadecimal number":       {a: "skew_tick=0x1", b: "skew_tick=1", want: true},
		"an octal number":            {a: "processor.max_cstate=010", b: "processor.max_cstate=8", want: true},
		"not an octal number":        {a: "processor.max_cstate=010", b: "processor.max_cstate=10"},
		"no idle state but C1":       {a: "processor.max_cstate=0", b: "processor.max_cstate=1", want: true},
		"two idle states":            {a: "processor.max_cstate=0", b: "processor.max_cstate=2"},
		"no intel_idle at all":       {a: "intel_idle.max_cstate=0", b: "intel_idle.max_cstate=1"},
		"a number with a sign":       {a: "skew_tick=+1", b: "skew_tick=1", want: true},
		"another number":             {a: "intel_idle.max_cstate=1", b: "intel_idle.max_cstate=0"},
		"a size":                     {a: "default_hugepagesz=1024M", b: "default_hugepagesz=1G", want: true},
		"a size in small letters":    {a: "hugepagesz=2m", b: "hugepagesz=2048K", want: true},
		"another size":               {a: "hugepagesz=2M", b: "hugepagesz=1G"},
		"pages by NUMA node":         {on: nodes(0, 1), a: "hugepages=1:8,0:8", b: "hugepages=16", want: true},
		"pages of the only node":     {on: nodes(0), a: "hugepages=0:8", b: "hugepages=8", want: true},
		"pages of one node of two":   {on: nodes(0, 1), a: "hugepages=0:8", b: "hugepages=8"},
		"more pages on one node":     {on: nodes(0, 1), a: "hugepages=0:9,1:7", b: "hugepages=16"},
		"pages of another node":      {on: nodes(0, 2), a: "hugepages=0:8,1:8", b: "hugepages=16"},
		"other pages by NUMA node":   {on: nodes(0, 1), a: "hugepages=0:8,1:8", b: "hugepages=8"},
		"pages of nodes not known":   {a: "hugepages=0:8,1:8", b: "hugepages=16"},
		"pages of a nameless node":   {on: nodes(0), a: "hugepages=:8", b: "hugepages=8"},
		"megabytes are not bytes":    {a: "mem=2M", b: "mem=2"},
		"pass-through on x86":        {on: intel(), a: "iommu=pt", b: "iommu.passthrough=1", want: true},
		"pass-through with a word":   {on: intel(), a: "iommu=pt", b: "iommu.passthrough=on", want: true},
		"pass-through on arm64":      {on: arm(), a: "iommu=pt", b: "iommu.passthrough=1"},
		"no pass-through":            {on: intel(), a: "iommu=nopt", b: "iommu.passthrough=0", want: true},
		"one and the other":          {on: intel(), a: "iommu=nopt", b: "iommu=pt"},
		"two words in one":           {on: intel(), a: "iommu=pt,soft", b: "iommu=pt"},
		"the same two words":         {on: intel(), a: "iommu=pt,soft", b: "iommu=pt,soft", want: true},
		"audit":                      {a: "audit=off", b: "audit=0", want: true},
		"page tables":                {on: intel(), a: "nopti", b: "pti=off", want: true},
		"page tables of arm64":       {on: arm(), a: "nopti", b: "pti=off"},
		"branch prediction":          {on: intel(), a: "nospectre_v2", b: "spectre_v2=off", want: true},
		"one mitigation of many":     {on: intel(), a: "mitigations=off", b: "nopti"},
		"all mitigations one by one": {on: intel(), a: "mitigations=off", b: "nopti nospectre_v2"},
		"event timer":                {on: intel(), a: "nohpet", b: "hpet=disable", want: true},
		"one processor":              {a: "nosmp", b: "maxcpus=0", want: true},
		"hibernation":                {a: "nohibernate", b: "hibernate=no", want: true},
		"both watchdogs":             {a: "nowatchdog", b: "nosoftlockup"},
		"kernel parameters":          {a: "sysctl/vm/swappiness=10", b: "sysctl.vm.swappiness=10", want: true},
		"quotes":                     {a: `"nohz_full=2-3"`, b: `nohz_full="2,3"`, want: true},
		"capitals in a name":         {a: "NOHZ=on", b: "nohz=on"},
		"several in any order":       {a: "nosmt nohz=on", b: "nohz=1 nosmt", want: true},
		"one of several":             {a: "nosmt nohz=on", b: "nohz=1"},
		"isolation in two":           {a: "isolcpus=domain,2-3 isolcpus=managed_irq,2-3", b: "isolcpus=domain,managed_irq,2-3", want: true},
		"for the init process":       {a: "nosmt -- single", b: "nosmt"},
		"unreadable":                 {a: "a\x00", b: "b\x00"},
	})
}

// nodes is a machine whose NUMA nodes with memory have these numbers.
func nodes(ids ...int) cmdline.Machine { return cmdline.Machine{MemoryNodes: ids} }

func checkPairs(t *testing.T, cases map[string]pair) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.on.SameText(tc.a, tc.b); got != tc.want {
				t.Errorf("SameText(%s, %s) = %t, want %t", tc.a, tc.b, got, tc.want)
			}
			if got := tc.on.SameText(tc.b, tc.a); got != tc.want {
				t.Errorf("SameText(%s, %s) = %t, want %t", tc.b, tc.a, got, tc.want)
			}
		})
	}
}

// effects are the effects of a line as "parameter: arguments".
func effects(t *testing.T, on cmdline.Machine, line string) []string {
	t.Helper()
	found := parse(t, line).Effects(on)
	texts := make([]string, len(found))
	for i, e := range found {
		texts[i] = e.Parameter + ": " + e.Text()
	}
	return texts
}

func TestEffects(t *testing.T) {
	cases := map[string]struct {
		on   cmdline.Machine
		line string
		want []string
	}{
		"nothing":             {},
		"the last one counts": {line: "nohz=off quiet nohz=on", want: []string{"nohz: nohz=on", "quiet: quiet"}},
		"all of some count": {line: "console=tty0 console=ttyS0 console=tty0",
			want: []string{"console: console=tty0 console=ttyS0 console=tty0"}},
		"hugepages of two sizes": {line: "default_hugepagesz=1G hugepagesz=1024M hugepages=4 hugepagesz=2M hugepages=8",
			want: []string{"default_hugepagesz: default_hugepagesz=1G", "hugepages of 1G: hugepages=4", "hugepages of 2M: hugepages=8"}},
		"the first number stands":       {line: "hugepagesz=2M hugepages=4 hugepages=8", want: []string{"hugepages of 2M: hugepages=4"}},
		"the first default size stands": {line: "default_hugepagesz=2M default_hugepagesz=1G", want: []string{"default_hugepagesz: default_hugepagesz=2M"}},
		"hugepages before their default size": {line: "hugepages=4 default_hugepagesz=1G",
			want: []string{"hugepages of 1G: hugepages=4", "default_hugepagesz: default_hugepagesz=1G"}},
		"hugepages of the usual size":     {on: intel(), line: "hugepages=4", want: []string{"hugepages of 2M: hugepages=4"}},
		"hugepages of an unknown size":    {on: arm(), line: "hugepages=4", want: []string{"hugepages: hugepages=4"}},
		"an alias has its own name":       {on: intel(), line: "iommu=pt", want: []string{"iommu.passthrough: iommu=pt"}},
		"the last of two names counts":    {on: intel(), line: "iommu=pt iommu.passthrough=0", want: []string{"iommu.passthrough: iommu.passthrough=0"}},
		"one argument with two effects":   {on: intel(), line: "iommu=soft,pt", want: []string{"iommu: iommu=soft,pt", "iommu.passthrough: iommu=soft,pt"}},
		"isolcpus and nohz_full":          {line: "isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3", want: []string{"isolcpus: isolcpus=2-3", "nohz_full: nohz_full=2-3", "rcu_nocbs: rcu_nocbs=2-3"}},
		"what the kernel does not take":   {line: "isolcpus=x nohz_full=y", want: []string{"isolcpus: isolcpus=x", "nohz_full: nohz_full=y"}},
		"the init process is left out":    {line: "quiet -- nohz=on", want: []string{"quiet: quiet"}},
		"two spellings of a name are one": {line: "rcu-nocbs=1 rcu_nocbs=2", want: []string{"rcu_nocbs: rcu_nocbs=2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, effects(t, tc.on, tc.line), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLinesWithTheSameEffects compares whole lines: what one wants, the other has.
func TestLinesWithTheSameEffects(t *testing.T) {
	cases := map[string]struct {
		wanted, running string
		// lacks are the parameters that the running line does not set as wanted.
		lacks []string
	}{
		"the kernel keeps the first isolcpus":  {"isolcpus=domain,2-3", "isolcpus=domain,2-3 isolcpus=domain,4-5", nil},
		"and not the last":                     {"isolcpus=domain,4-5", "isolcpus=domain,2-3 isolcpus=domain,4-5", []string{"isolcpus"}},
		"each kind of work once":               {"isolcpus=domain,managed_irq,2-3", "isolcpus=domain,2-3 isolcpus=managed_irq,2-3", nil},
		"a refused part":                       {"isolcpus=domain,managed_irq,2-3", "isolcpus=domain,2-3 isolcpus=domain,managed_irq,4", []string{"isolcpus"}},
		"the kernel keeps the first nohz_full": {"nohz_full=2-3", "nohz_full=2-3 nohz_full=4", nil},
		"nohz_full must match isolcpus=nohz":   {"nohz_full=4-5", "isolcpus=nohz,2-3 nohz_full=4-5", []string{"nohz_full"}},
		"isolcpus=nohz is less than nohz_full": {"isolcpus=managed_irq,2-3 nohz_full=2-3", "isolcpus=nohz,managed_irq,2-3", []string{"isolcpus", "nohz_full"}},
		"isolcpus=nohz beside nohz_full":       {"nohz_full=2-3 isolcpus=managed_irq,2-3", "isolcpus=nohz,managed_irq,2-3 nohz_full=2-3", nil},
		"isolcpus=nohz beside nothing":         {"isolcpus=managed_irq,2-3", "isolcpus=nohz,managed_irq,2-3", []string{"isolcpus"}},
		"callbacks of CPUs without tick":       {"nohz_full=2-3 rcu_nocbs=2-3", "nohz_full=2-3", nil},
		"callbacks of more CPUs":               {"nohz_full=2-3 rcu_nocbs=2-4", "nohz_full=2-3", []string{"rcu_nocbs"}},
		"callbacks of others only":             {"nohz_full=2-3 rcu_nocbs=2-3", "nohz_full=2-3 rcu_nocbs=4", []string{"rcu_nocbs"}},
		"callbacks alone":                      {"nohz_full=2-3 rcu_nocbs=2-3", "rcu_nocbs=2-3", []string{"nohz_full"}},
		"all CPUs but one":                     {"isolcpus=domain,1-79", "isolcpus=domain,0-79", nil},
		"the last of rcu_nocbs":                {"rcu_nocbs=2-3", "rcu_nocbs=4 rcu_nocbs=2-3", nil},
		"not the first of rcu_nocbs":           {"rcu_nocbs=4", "rcu_nocbs=4 rcu_nocbs=2-3", []string{"rcu_nocbs"}},
		"an unreadable list":                   {"isolcpus=domain,2-3", "isolcpus=domain,2-x", []string{"isolcpus"}},
		"one of several consoles":              {"console=ttyS0", "console=ttyS0 console=tty0", nil},
		"a console that is missing":            {"console=ttyS0 console=hvc0", "console=ttyS0", []string{"console"}},
		"each flag of a clock":                 {"tsc=reliable", "tsc=reliable tsc=nowatchdog", nil},
		"each flag of machine checks":          {"mce=ignore_ce", "mce=no_cmci mce=ignore_ce mce=dont_log_ce", nil},
		"both watchdogs in one word":           {"nmi_watchdog=0 nosoftlockup", "nowatchdog", nil},
		"one word beats a number":              {"nmi_watchdog=0 nosoftlockup", "nowatchdog nmi_watchdog=1", nil},
		"both watchdogs in two words":          {"nowatchdog", "nosoftlockup nmi_watchdog=0", nil},
		"one watchdog of two":                  {"nowatchdog", "nosoftlockup nmi_watchdog=1", []string{"nowatchdog"}},
		"what a watchdog does when it barks":   {"nmi_watchdog=0", "nmi_watchdog=0 nmi_watchdog=panic", nil},
		"a watchdog that only panics":          {"nmi_watchdog=0", "nmi_watchdog=nopanic", []string{"nmi_watchdog"}},
		"siblings off for good":                {"nosmt", "nosmt=force", nil},
		"siblings off, but not for good":       {"nosmt=force", "nosmt", []string{"nosmt"}},
		"an IOMMU with scalable mode":          {"intel_iommu=on", "intel_iommu=sm_on,on", nil},
		"an IOMMU with scalable mode later":    {"intel_iommu=on", "intel_iommu=on intel_iommu=sm_on", nil},
		"an IOMMU switched off again":          {"intel_iommu=on", "intel_iommu=on,off", []string{"intel_iommu"}},
		"scalable mode alone":                  {"intel_iommu=on", "intel_iommu=sm_on", []string{"intel_iommu"}},
		"an IOMMU off among others":            {"amd_iommu=off", "amd_iommu=fullflush,off", nil},
		"a frequency driver and its limits":    {"intel_pstate=active", "intel_pstate=active intel_pstate=per_cpu_perf_limits", nil},
		"another mode of a frequency driver":   {"intel_pstate=active", "intel_pstate=active intel_pstate=passive", []string{"intel_pstate"}},
		"a module's switch without a value":    {"zswap.enabled=0 workqueue.power_efficient=1", "zswap.enabled=N workqueue.power_efficient", nil},
		"a number with zeros":                  {"hugepagesz=2M hugepages=8", "hugepagesz=2M hugepages=0008", nil},
		"another flag of a clock":              {"tsc=reliable", "tsc=nowatchdog", []string{"tsc"}},
		"the number before its size":           {"hugepagesz=2M hugepages=8", "hugepages=8", nil},
		"the number of another size":           {"hugepagesz=1G hugepages=8", "hugepagesz=2M hugepages=8", []string{"hugepages of 1G"}},
		"no number and none":                   {"hugepagesz=2M hugepages=0", "", []string{"hugepages of 2M"}},
		"pass-through among other words":       {"iommu=pt", "iommu=soft,pt", nil},
		"pass-through taken back":              {"iommu=pt", "iommu=pt iommu=nopt", []string{"iommu.passthrough"}},
		"a CPU too many voids the list":        {"nohz_full=2-79", "nohz_full=2-80", []string{"nohz_full"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			has := parse(t, tc.running).RunningEffects(intel())
			var lacks []string
			for _, wanted := range parse(t, tc.wanted).Effects(intel()) {
				if !has[wanted.Parameter].Has(wanted) {
					lacks = append(lacks, wanted.Parameter)
				}
			}
			if diff := cmp.Diff(tc.lacks, lacks); diff != "" {
				t.Errorf("lacking parameters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsolation(t *testing.T) {
	cases := map[string]struct{ line, domain, managed, noise string }{
		"nothing":             {},
		"all kinds":           {line: "isolcpus=nohz,domain,managed_irq,2-3", domain: "2-3", managed: "2-3", noise: "2-3"},
		"without a flag":      {line: "isolcpus=2-3", domain: "2-3"},
		"all is no list here": {line: "isolcpus=all"},
		"but behind a number": {line: "isolcpus=78-N", domain: "78-79"},
		"flags without CPUs":  {line: "isolcpus=domain,managed_irq"},
		"a stopped tick":      {line: "nohz_full=all", noise: "1-79"},
		"not for the kernel":  {line: "-- isolcpus=2-3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := parse(t, tc.line).Isolation(intel())
			want := cmdline.Isolation{Domain: set(tc.domain), ManagedIRQ: set(tc.managed), Noise: set(tc.noise)}
			if !got.Domain.Equal(want.Domain) || !got.ManagedIRQ.Equal(want.ManagedIRQ) || !got.Noise.Equal(want.Noise) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestParameter(t *testing.T) {
	for text, want := range map[string]string{
		"iommu=pt": "iommu.passthrough", "iommu=soft": "iommu", "rcu-nocbs=1": "rcu_nocbs", "nosmp": "maxcpus", "iommu=": "iommu", "iommu=,": "iommu",
	} {
		if got := intel().Parameter(parse(t, text).Args()[0]); got != want {
			t.Errorf("%s sets %s, want %s", text, got, want)
		}
	}
}

// FuzzEffects checks that a line has the effects that it has: comparing is reflexive, whatever the text, and the order of
// arguments for different things does not count.
func FuzzEffects(f *testing.F) {
	for _, seed := range []string{
		"isolcpus=domain,managed_irq,2-N nohz_full=2-79 rcu_nocbs=all irqaffinity=0", "hugepages=4 hugepagesz=2M hugepages=5 default_hugepagesz=1G",
		"iommu=pt,soft,nopt iommu= iommu=, iommu", "isolcpus=nohz,1 nohz_full=2", "isolcpus=a_b,c-d,1 nosmp maxcpus=0", "sysctl/ sysctl sysctl.a=1 -- x",
		"console=a console=b tsc=x mce=1 mce=off", "nohz_full= rcu_nocbs isolcpus", "hugepages= hugepagesz= hugepages=",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line, err := cmdline.Parse(text)
		if err != nil {
			return
		}
		for _, on := range []cmdline.Machine{{}, intel(), arm()} {
			checkEffects(t, line, on)
			for _, arg := range line.Args() {
				if !on.SameArgument(arg, arg) || !on.SameText(arg.Text(), arg.Text()) || on.Parameter(arg) == "" && arg.Name != "" {
					t.Errorf("%q is not what it is", arg.Text())
				}
			}
		}
	})
}

func checkEffects(t *testing.T, line cmdline.Line, on cmdline.Machine) {
	t.Helper()
	effects, again := line.Effects(on), line.Effects(on)
	if !slices.EqualFunc(effects, again, cmdline.Effect.Equal) {
		t.Fatal("one line has two sets of effects")
	}
	seen := map[string]bool{}
	for i, e := range effects {
		if len(e.Args) == 0 || seen[e.Parameter] || !again[i].Has(e) || e.Name() == "" && e.Parameter != "" {
			t.Errorf("effect %+v", e)
		}
		seen[e.Parameter] = true
	}
}

func BenchmarkEffects(b *testing.B) {
	line, err := cmdline.Parse("BOOT_IMAGE=(hd0,gpt3)/boot/vmlinuz root=UUID=1-2 rw " + strings.Repeat(
		"isolcpus=domain,managed_irq,2-511 nohz_full=2-511 rcu_nocbs=2-511 irqaffinity=0-1 skew_tick=1 nohz=on iommu=pt hugepagesz=2M hugepages=4 ", 4))
	if err != nil {
		b.Fatal(err)
	}
	on := cmdline.Machine{Architecture: "amd64", Possible: set("0-511")}
	b.ReportAllocs()
	for b.Loop() {
		line.Effects(on)
	}
}
