// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package dradriver hands the NICs of one BypassNICPool to pods by Dynamic Resource Allocation: it publishes them in
// ResourceSlices of its node and prepares them for the kubelet, as the driver that bypass.DriverName names.
//
// What is published and what a container gets are the devices and edits of the device plugin. A claim that is prepared
// is a CDI specification of its own, and nothing else: the driver keeps no other account, so a driver that restarts
// goes on where the last one ended, and a reboot, which empties the folder of specifications, has every claim of a
// pod prepared anew.
package dradriver
