// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/test/confinement/attempts"
)

// try does what somebody would who has taken over the container that it runs in, and prints a list with what came of each; ""
// is what worked. Each trial says below which folder of the container it is to be tried.
func try(trials string) error {
	var all []struct {
		Root string `json:"root"`
		attempts.Trial
	}
	if err := json.Unmarshal([]byte(trials), &all); err != nil {
		return fmt.Errorf("-try: %w", err)
	}
	said := make([]string, len(all))
	for i, one := range all {
		said[i] = attempts.Try(one.Root, one.Trial)
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

// get asks an address whose certificate nobody has signed, and prints the status and how much it said.
func get(address, token string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	asker := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := asker.Do(request)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(answer.Body)
	if err := answer.Body.Close(); err != nil {
		return err
	}
	fmt.Println(answer.StatusCode, len(content))
	return err
}

// dialLimit is longer than a connection takes on a busy emulated machine, and not so long that one tries again many times.
const dialLimit = 6 * time.Second

// dial connects and prints what came of it: "connected", "refused" where nobody listens, or "no answer" where packets are dropped.
func dial(address string) error {
	connection, err := net.DialTimeout("tcp", address, dialLimit)
	timeout, isNetwork := errors.AsType[net.Error](err)
	switch {
	case err == nil:
		fmt.Println("connected")
		return connection.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		fmt.Println("refused")
	case isNetwork && timeout.Timeout():
		fmt.Println("no answer")
	default:
		return err
	}
	return nil
}

// take takes connections until the program is ended, and ends each at once.
func take(address string) error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		if err := connection.Close(); err != nil {
			return err
		}
	}
}
