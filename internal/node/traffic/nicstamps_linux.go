// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stampNIC is what ETHTOOL_GET_TS_INFO and the ioctls of hardware stamps tell of interfaces in this network namespace, and change there.
type stampNIC interface {
	// abilities are those of the interface and its driver.
	abilities(name string) (*unix.EthtoolTsInfo, error)
	// setting is the one in force.
	setting(name string) (unix.HwTstampConfig, error)
	// set changes it, and gives the one that the driver made of it.
	set(name string, to unix.HwTstampConfig) (unix.HwTstampConfig, error)
}

// nicStamping is the setting of a NIC for a measurement.
type nicStamping struct {
	of   stampNIC
	name string
	// clock is the number of the NIC's clock; nil where it tells none.
	clock *int
	// before was in force, and during is.
	before, during unix.HwTstampConfig
}

// words are the names of numbers, as ethtool -T has them.
type words []string

// of is the name of a number.
func (w words) of(number int32) string {
	if number < 0 || int(number) >= len(w) {
		return strconv.Itoa(int(number))
	}
	return w[number]
}

// in are the names of all bits that are set; "none" without any.
func (w words) in(bits uint32) string {
	var found []string
	for bit := range 32 {
		if bits>>bit&1 == 1 {
			found = append(found, w.of(int32(bit)))
		}
	}
	if len(found) == 0 {
		return "none"
	}
	return strings.Join(found, ", ")
}

func capabilityWords() words {
	return words{"hardware-transmit", "software-transmit", "hardware-receive", "software-receive", "software-system-clock", "hardware-legacy-clock", "hardware-raw-clock"}
}

func sendingWords() words { return words{"off", "on", "one-step-sync", "one-step-p2p"} }

func receivingWords() words {
	return words{
		"none", "all", "some", "ptpv1-l4-event", "ptpv1-l4-sync", "ptpv1-l4-delay-req", "ptpv2-l4-event", "ptpv2-l4-sync", "ptpv2-l4-delay-req",
		"ptpv2-l2-event", "ptpv2-l2-sync", "ptpv2-l2-delay-req", "ptpv2-event", "ptpv2-sync", "ptpv2-delay-req", "ntp-all",
	}
}

func settingWords(s unix.HwTstampConfig) string {
	return fmt.Sprintf("sending %s, receiving %s", sendingWords().of(s.Tx_type), receivingWords().of(s.Rx_filter))
}

// isComplete reports whether a setting stamps each message.
func isComplete(s unix.HwTstampConfig) bool {
	return s.Tx_type == unix.HWTSTAMP_TX_ON && s.Rx_filter == unix.HWTSTAMP_FILTER_ALL
}

// lackOf is what an interface cannot do of what stamps of each message take; "" for nothing.
func lackOf(can *unix.EthtoolTsInfo) string {
	const needed = unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE
	var lacking []string
	if missing := needed &^ can.So_timestamping; missing != 0 {
		lacking = append(lacking, capabilityWords().in(missing))
	}
	if can.Tx_types>>unix.HWTSTAMP_TX_ON&1 == 0 {
		lacking = append(lacking, "sending on")
	}
	if can.Rx_filters>>unix.HWTSTAMP_FILTER_ALL&1 == 0 {
		lacking = append(lacking, "receiving all")
	}
	return strings.Join(lacking, ", ")
}

// settingFor is the setting under which a NIC stamps each message, from the one in force. What another program has set so that the NIC changes messages
// is left to it.
func settingFor(now unix.HwTstampConfig) (unix.HwTstampConfig, error) {
	if !slices.Contains([]int32{unix.HWTSTAMP_TX_OFF, unix.HWTSTAMP_TX_ON}, now.Tx_type) {
		return now, fmt.Errorf("it is set to %s, by which it writes stamps into the messages of PTP: end the program that needs this, such as ptp4l, before", settingWords(now))
	}
	now.Tx_type, now.Rx_filter = unix.HWTSTAMP_TX_ON, unix.HWTSTAMP_FILTER_ALL
	return now, nil
}

// openNIC has a NIC stamp each message. Before it is changed, notice gets a sentence that says how to put it back.
func openNIC(of stampNIC, name string, notice func(string)) (*nicStamping, error) {
	can, err := of.abilities(name)
	if err != nil {
		return nil, fmt.Errorf("interface %s does not tell what it can stamp (ETHTOOL_GET_TS_INFO): %w", name, err)
	}
	if lacks := lackOf(can); lacks != "" {
		return nil, fmt.Errorf("interface %s cannot stamp each message in hardware: it lacks %s; it can %s; sending: %s; receiving: %s", name, lacks,
			capabilityWords().in(can.So_timestamping), sendingWords().in(can.Tx_types), receivingWords().in(can.Rx_filters))
	}
	n := &nicStamping{of: of, name: name}
	if can.Phc_index >= 0 {
		n.clock = new(int(can.Phc_index))
	}
	if n.before, err = of.setting(name); err != nil {
		return nil, fmt.Errorf("interface %s does not tell how its stamps are set (SIOCGHWTSTAMP), so that they could not be put back: %w", name, err)
	}
	if n.during = n.before; isComplete(n.before) {
		return n, nil
	}
	wanted, err := settingFor(n.before)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	notice(fmt.Sprintf("the stamps of interface %s are set from %s to %s until the measurement ends; should it be killed: hwstamp_ctl -i %s -t %d -r %d",
		name, settingWords(n.before), settingWords(wanted), name, n.before.Tx_type, n.before.Rx_filter))
	return n, n.change(wanted)
}

// change sets the NIC, and puts it back where the driver makes something else of the setting.
func (n *nicStamping) change(wanted unix.HwTstampConfig) error {
	made, err := n.of.set(n.name, wanted)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("interface %s is set to %s, and to set its stamps takes the capability CAP_NET_ADMIN: %w", n.name, settingWords(n.before), err)
	}
	if err != nil {
		return fmt.Errorf("interface %s is not set to %s (SIOCSHWTSTAMP): %w", n.name, settingWords(wanted), err)
	}
	n.during = made
	if !isComplete(made) {
		return errors.Join(fmt.Errorf("the driver of interface %s makes %s of %s", n.name, settingWords(made), settingWords(wanted)), n.putBack())
	}
	return nil
}

// putBack gives the NIC the setting that it had. What another has set meanwhile stays.
func (n *nicStamping) putBack() error {
	if n.during == n.before {
		return nil
	}
	now, err := n.of.setting(n.name)
	if err == nil && now != n.during {
		return fmt.Errorf("the stamps of interface %s were set to %s by another meanwhile, and stay so; they were %s", n.name, settingWords(now), settingWords(n.before))
	}
	if err == nil {
		now, err = n.of.set(n.name, n.before)
	}
	if err == nil && now != n.before {
		err = fmt.Errorf("the driver makes %s of it", settingWords(now))
	}
	if err != nil {
		return fmt.Errorf("the stamps of interface %s are not put back to %s: %w", n.name, settingWords(n.before), err)
	}
	return nil
}

// hostNICs are those of the kernel.
type hostNICs struct{}

// asking gives a socket to ask the kernel by.
func asking[T any](ask func(socket int) (T, error)) (answer T, err error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return answer, err
	}
	defer func() { _ = unix.Close(socket) }()
	return ask(socket)
}

func (hostNICs) abilities(name string) (*unix.EthtoolTsInfo, error) {
	return asking(func(socket int) (*unix.EthtoolTsInfo, error) { return unix.IoctlGetEthtoolTsInfo(socket, name) })
}

func (hostNICs) setting(name string) (unix.HwTstampConfig, error) {
	return asking(func(socket int) (unix.HwTstampConfig, error) {
		now, err := unix.IoctlGetHwTstamp(socket, name)
		if err != nil {
			return unix.HwTstampConfig{}, err
		}
		return *now, nil
	})
}

func (hostNICs) set(name string, to unix.HwTstampConfig) (unix.HwTstampConfig, error) {
	return asking(func(socket int) (unix.HwTstampConfig, error) {
		err := unix.IoctlSetHwTstamp(socket, name, &to)
		return to, err
	})
}

// openNICOfHost has a NIC of this host stamp each message.
func openNICOfHost(name string, notice func(string)) (*nicStamping, error) {
	return openNIC(hostNICs{}, name, notice)
}
