// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// pretendedNIC is a NIC without hardware.
type pretendedNIC struct {
	can unix.EthtoolTsInfo
	now unix.HwTstampConfig
	// makes is what the driver makes of a setting; nil for what was asked for.
	makes func(unix.HwTstampConfig) unix.HwTstampConfig
	// canErr, nowErr and setErr are the errors of asking and setting.
	canErr, nowErr, setErr error
	// sets are the settings that were asked for, in their order.
	sets []unix.HwTstampConfig
}

func (p *pretendedNIC) abilities(string) (*unix.EthtoolTsInfo, error) { return &p.can, p.canErr }

func (p *pretendedNIC) setting(string) (unix.HwTstampConfig, error) { return p.now, p.nowErr }

func (p *pretendedNIC) set(_ string, to unix.HwTstampConfig) (unix.HwTstampConfig, error) {
	p.sets = append(p.sets, to)
	if p.setErr != nil {
		return unix.HwTstampConfig{}, p.setErr
	}
	if p.makes != nil {
		to = p.makes(to)
	}
	p.now = to
	return to, nil
}

func of(sending, receiving int32) unix.HwTstampConfig {
	return unix.HwTstampConfig{Flags: 1, Tx_type: sending, Rx_filter: receiving}
}

// able is a NIC that stamps each message when it is told to.
func able(now unix.HwTstampConfig) *pretendedNIC {
	return &pretendedNIC{now: now, can: unix.EthtoolTsInfo{
		Phc_index: 3, Tx_types: 1<<unix.HWTSTAMP_TX_OFF | 1<<unix.HWTSTAMP_TX_ON, Rx_filters: 1<<unix.HWTSTAMP_FILTER_NONE | 1<<unix.HWTSTAMP_FILTER_ALL,
		So_timestamping: unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE,
	}}
}

// TestNICIsSetAndPutBack: a setting is changed when it is another, once, and put back as it was unless somebody has changed it meanwhile.
func TestNICIsSetAndPutBack(t *testing.T) {
	off, ptp, complete := of(unix.HWTSTAMP_TX_OFF, unix.HWTSTAMP_FILTER_NONE), of(unix.HWTSTAMP_TX_ON, unix.HWTSTAMP_FILTER_PTP_V2_EVENT), of(unix.HWTSTAMP_TX_ON, unix.HWTSTAMP_FILTER_ALL)
	cases := map[string]struct {
		before    unix.HwTstampConfig
		meanwhile func(*pretendedNIC)
		sets      []unix.HwTstampConfig
		notice    string
		want      string
	}{
		"off": {off, func(*pretendedNIC) {}, []unix.HwTstampConfig{complete, off},
			"the stamps of interface eth0 are set from sending off, receiving none to sending on, receiving all until the measurement ends; should it be killed: hwstamp_ctl -i eth0 -t 0 -r 0", ""},
		"for PTP alone": {ptp, func(*pretendedNIC) {}, []unix.HwTstampConfig{complete, ptp},
			"the stamps of interface eth0 are set from sending on, receiving ptpv2-event to sending on, receiving all until the measurement ends; should it be killed: hwstamp_ctl -i eth0 -t 1 -r 12", ""},
		"complete": {complete, func(*pretendedNIC) {}, nil, "", ""},
		"changed by another": {off, func(p *pretendedNIC) { p.now = ptp }, []unix.HwTstampConfig{complete}, "-",
			"the stamps of interface eth0 were set to sending on, receiving ptpv2-event by another meanwhile, and stay so; they were sending off, receiving none"},
		"gone meanwhile": {off, func(p *pretendedNIC) { p.nowErr = unix.ENODEV }, []unix.HwTstampConfig{complete}, "-",
			"the stamps of interface eth0 are not put back to sending off, receiving none: no such device"},
		"stuck": {off, func(p *pretendedNIC) { p.setErr = unix.EIO }, []unix.HwTstampConfig{complete, off}, "-",
			"the stamps of interface eth0 are not put back to sending off, receiving none: input/output error"},
		"made something else": {off, func(p *pretendedNIC) { p.makes = func(unix.HwTstampConfig) unix.HwTstampConfig { return ptp } }, []unix.HwTstampConfig{complete, off}, "-",
			"the stamps of interface eth0 are not put back to sending off, receiving none: the driver makes sending on, receiving ptpv2-event of it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			nic, said := able(tc.before), ""
			n, err := openNIC(nic, "eth0", func(sentence string) { said = sentence })
			if err != nil || !isComplete(nic.now) || n.clock == nil || *n.clock != 3 {
				t.Fatalf("%+v, %v: %+v", n, err, nic.now)
			}
			if tc.notice != "-" && said != tc.notice {
				t.Errorf("the notice is %q, want %q", said, tc.notice)
			}
			tc.meanwhile(nic)
			got := ""
			if err := n.putBack(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got) + cmp.Diff(tc.sets, nic.sets); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNICRefuses(t *testing.T) {
	off := of(unix.HWTSTAMP_TX_OFF, unix.HWTSTAMP_FILTER_NONE)
	cases := map[string]struct {
		change func(*pretendedNIC)
		want   string
	}{
		"that tells nothing": {func(p *pretendedNIC) { p.canErr = unix.EOPNOTSUPP }, "interface eth0 does not tell what it can stamp (ETHTOOL_GET_TS_INFO): operation not supported"},
		"without hardware": {func(p *pretendedNIC) {
			p.can = unix.EthtoolTsInfo{So_timestamping: unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE, Phc_index: -1}
		}, "interface eth0 cannot stamp each message in hardware: it lacks hardware-transmit, hardware-receive, hardware-raw-clock, sending on, receiving all; " +
			"it can software-transmit, software-receive, software-system-clock; sending: none; receiving: none"},
		"for PTP alone": {func(p *pretendedNIC) {
			p.can.Rx_filters = 1<<unix.HWTSTAMP_FILTER_NONE | 1<<unix.HWTSTAMP_FILTER_PTP_V2_EVENT
		},
			"interface eth0 cannot stamp each message in hardware: it lacks receiving all; it can hardware-transmit, hardware-receive, hardware-raw-clock; " +
				"sending: off, on; receiving: none, ptpv2-event"},
		"that sends without": {func(p *pretendedNIC) { p.can.Tx_types = 1 }, "interface eth0 cannot stamp each message in hardware: it lacks sending on; " +
			"it can hardware-transmit, hardware-receive, hardware-raw-clock; sending: off; receiving: none, all"},
		"that does not tell its setting": {func(p *pretendedNIC) { p.nowErr = unix.EOPNOTSUPP },
			"interface eth0 does not tell how its stamps are set (SIOCGHWTSTAMP), so that they could not be put back: operation not supported"},
		"in use for one step": {func(p *pretendedNIC) { p.now = of(unix.HWTSTAMP_TX_ONESTEP_SYNC, unix.HWTSTAMP_FILTER_PTP_V2_EVENT) },
			"interface eth0: it is set to sending one-step-sync, receiving ptpv2-event, by which it writes stamps into the messages of PTP: end the program that needs this, such as ptp4l, before"},
		"of another":         {func(p *pretendedNIC) { p.setErr = unix.EPERM }, "interface eth0 is set to sending off, receiving none, and to set its stamps takes the capability CAP_NET_ADMIN: operation not permitted"},
		"with other filters": {func(p *pretendedNIC) { p.setErr = unix.ERANGE }, "interface eth0 is not set to sending on, receiving all (SIOCSHWTSTAMP): numerical result out of range"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			nic := able(off)
			tc.change(nic)
			before := nic.now
			if _, err := openNIC(nic, "eth0", func(string) {}); err == nil || err.Error() != tc.want {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
			if nic.now != before {
				t.Errorf("the NIC is left with %+v", nic.now)
			}
		})
	}
}

// TestNICThatMakesLess: a driver that sets less than it says is put back at once.
func TestNICThatMakesLess(t *testing.T) {
	nic := able(of(unix.HWTSTAMP_TX_OFF, unix.HWTSTAMP_FILTER_NONE))
	nic.makes = func(to unix.HwTstampConfig) unix.HwTstampConfig {
		if to.Rx_filter == unix.HWTSTAMP_FILTER_ALL {
			to.Rx_filter = unix.HWTSTAMP_FILTER_PTP_V2_EVENT
		}
		return to
	}
	_, err := openNIC(nic, "eth0", func(string) {})
	if err == nil || err.Error() != "the driver of interface eth0 makes sending on, receiving ptpv2-event of sending on, receiving all" ||
		nic.now != of(unix.HWTSTAMP_TX_OFF, unix.HWTSTAMP_FILTER_NONE) {
		t.Errorf("%v, and it has %+v", err, nic.now)
	}
}

// TestStampingCloses: what could not be put back is said at once, and stands in the result where there is one.
func TestStampingCloses(t *testing.T) {
	for name, result := range map[string]*latency.Result{"with a result": {}, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			nic := able(of(unix.HWTSTAMP_TX_OFF, unix.HWTSTAMP_FILTER_NONE))
			var said []string
			opened, err := openNIC(nic, "eth0", func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			nic.setErr = errors.New("stuck")
			s := &stamping{setup: &latency.Stamping{By: latency.StampedByNIC, Interface: "eth0"}, nic: opened, notice: func(sentence string) { said = append(said, sentence) }}
			s.close(result)
			want := []string{"the stamps of interface eth0 are not put back to sending off, receiving none: stuck"}
			if diff := cmp.Diff(want, said); diff != "" {
				t.Error(diff)
			}
			if result != nil && (result.Setup.Stamping != s.setup || !cmp.Equal(result.Remarks, want)) {
				t.Errorf("%+v", result)
			}
		})
	}
}

// TestLoopbackHasNoHardware asks the kernel of this machine.
func TestLoopbackHasNoHardware(t *testing.T) {
	r := quick(Port)
	r.Stamper = latency.StampedByNIC
	_, err := measure(t, r, latency.Budget{})
	if err == nil || !strings.HasPrefix(err.Error(), "stamps: interface lo cannot stamp each message in hardware: it lacks hardware-transmit, hardware-receive, hardware-raw-clock, ") ||
		!strings.Contains(err.Error(), "; it can software-transmit, software-receive, ") {
		t.Errorf("the error is %v", err)
	}
	if _, err := (hostNICs{}).setting("lo"); !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENODEV) {
		t.Errorf("its setting: %v", err)
	}
	if _, err := openNICOfHost("nobody0", func(string) {}); !errors.Is(err, unix.ENODEV) {
		t.Errorf("an interface that is not there: %v", err)
	}
	if _, err := (hostNICs{}).set("lo", of(unix.HWTSTAMP_TX_ON, unix.HWTSTAMP_FILTER_ALL)); err == nil {
		t.Error("lo can be set")
	}
}
