// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline

import "slices"

// RunningEffects are the effects of the line on the kernel that runs with it, by parameter: those of the arguments, and those
// that arguments of other parameters have besides, so that a plan finds what it wants however it was brought about.
func (l Line) RunningEffects(m Machine) map[string]Effect {
	effects := map[string]Effect{}
	for _, e := range l.Effects(m) {
		effects[e.Parameter] = e
	}
	implyWatchdogs(effects)
	implyOffloading(effects, l.Isolation(m))
	return effects
}

// implyWatchdogs follows lockup_detector_update_enable of kernel/watchdog.c: nowatchdog switches both detectors off, whatever
// nmi_watchdog= says.
func implyWatchdogs(effects map[string]Effect) {
	const both, soft, hard, off = "nowatchdog", "nosoftlockup", "nmi_watchdog", "=0"
	neither, given := effects[both]
	_, softOff := effects[soft]
	switch {
	case given:
		effects[hard] = Effect{Parameter: hard, Args: neither.Args, meanings: []string{off}}
		if !softOff {
			effects[soft] = Effect{Parameter: soft, Args: neither.Args, meanings: []string{""}}
		}
	case softOff && slices.Contains(effects[hard].meanings, off):
		effects[both] = Effect{Parameter: both, Args: slices.Concat(effects[hard].Args, effects[soft].Args), meanings: []string{""}}
	}
}

// implyOffloading follows rcu_init_nohz of kernel/rcu/tree_nocb.h: CPUs without tick are without RCU callbacks, too.
func implyOffloading(effects map[string]Effect, kept Isolation) {
	const offloaded = "rcu_nocbs"
	if _, given := effects[offloaded]; given || kept.Noise.IsEmpty() {
		return
	}
	by, given := effects["nohz_full"]
	if !given {
		by = effects["isolcpus"]
	}
	effects[offloaded] = Effect{Parameter: offloaded, Args: by.Args, meanings: []string{"=" + kept.Noise.String()}}
}
