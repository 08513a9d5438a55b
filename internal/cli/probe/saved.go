// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/inputfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
)

// saved is the result of a measurement in a file.
type saved struct {
	file string
	// command has written it: jitter, pingpong, samples, rate, load or recorded.
	command string
	// jitter is nil unless the command is jitter, and latency is nil where it is.
	jitter  *jitter.Result
	latency *latency.Result
}

// isPingPong reports whether messages were under way one at a time, whoever measured them.
func (s *saved) isPingPong() bool { return s.latency != nil && s.latency.Kind == latency.KindPingPong }

// form is by what results of commands are told from each other, and from what is none.
type form struct {
	Version    int             `json:"version"`
	Kind       string          `json:"kind"`
	Generator  string          `json:"generator"`
	CPUs       json.RawMessage `json:"cpus"`
	APIVersion string          `json:"apiVersion"`
}

// command is the one whose result has this form; "" for none.
func (f *form) command() string {
	switch {
	case f.APIVersion != "":
		return ""
	case f.Kind == "" && f.CPUs != nil:
		return "jitter"
	case f.Kind == string(latency.KindLoadSearch) && f.Generator != "":
		return "recorded"
	case f.Kind == string(latency.KindPingPong) && f.Generator != "":
		return "samples"
	}
	return map[latency.Kind]string{latency.KindPingPong: "pingpong", latency.KindRateSweep: "rate", latency.KindLoadSearch: "load"}[latency.Kind(f.Kind)]
}

// stranger says what a file is that no command here has written.
func (f *form) stranger() string {
	switch {
	case f.APIVersion != "":
		return fmt.Sprintf("is an object of Kubernetes, of kind %.40q: saved LatencyTests are compared by test compare", f.Kind)
	case f.Kind == "":
		return "is no result of a probe command with -o json: it has neither kind nor cpus"
	default:
		return fmt.Sprintf("is no result that this program knows: its kind is %.40q", f.Kind)
	}
}

// mostOfResult is how many bytes a saved result or record may have: those with histograms of all CPUs of a large machine have a few million.
const mostOfResult = 256 << 20

func readSaved(file string) (*saved, error) {
	data, err := inputfile.Read(file, mostOfResult)
	if err != nil {
		return nil, err
	}
	return parseSaved(file, data)
}

// parseSaved reads what a command wrote into a file with -o json.
func parseSaved(file string, data []byte) (*saved, error) {
	var f form
	if err := decode(data, &f); err != nil {
		return nil, fmt.Errorf("%s is no result of a probe command with -o json: %w", file, err)
	}
	s := &saved{file: file, command: f.command()}
	var err error
	switch {
	case s.command == "":
		return nil, fmt.Errorf("%s %s", file, f.stranger())
	case s.command == "jitter":
		s.jitter, err = ParseResult(file, data)
	case f.Version == 0:
		return nil, fmt.Errorf("%s is no result of probe %s -o json: it has no version", file, s.command)
	case f.Version != latency.Version:
		return nil, fmt.Errorf("%s is of version %d of the form of results, and this program reads version %d", file, f.Version, latency.Version)
	default:
		s.latency, err = parseLatency(s, data)
	}
	return s, err
}

func parseLatency(s *saved, data []byte) (*latency.Result, error) {
	result := &latency.Result{}
	if err := decode(data, result); err != nil {
		return nil, fmt.Errorf("%s is no result of probe %s -o json: %w", s.file, s.command, err)
	}
	if err := result.Validate(); err != nil {
		return nil, fmt.Errorf("%s is no result of probe %s -o json: %w", s.file, s.command, err)
	}
	return result, nil
}

// ParseResult reads what probe jitter -o json wrote into a file.
func ParseResult(file string, data []byte) (*jitter.Result, error) {
	result := &jitter.Result{}
	if err := decode(data, result); err != nil {
		return nil, fmt.Errorf("%s is no result of probe jitter -o json: %w", file, err)
	}
	if err := result.Validate(); err != nil {
		return nil, fmt.Errorf("%s is no result of probe jitter -o json: %w", file, err)
	}
	return result, nil
}

// decode reads JSON, and says what is wrong with it to people who wrote none.
func decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(into)
	wrong, isOther := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is cut short")
	case isOther:
		return fmt.Errorf("%s is of another type (%s)", cmp.Or(wrong.Field, "it"), wrong.Value)
	case err != nil:
		return fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind its end")
	}
	return nil
}
