// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package kubeletservice plays the service of systemd that runs a kubelet: it starts, lives as long as its configuration lets it, and
// is started again, on a clock of its own.
package kubeletservice

import (
	"errors"
	"strconv"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
)

// Life is how a kubelet fares with what it finds when it starts.
type Life struct {
	// Ends is how long after its start the process ends by itself; 0 for never. A kubelet that refuses its configuration ends within
	// a second.
	Ends time.Duration
	// Green tells that it says that it is healthy while it lives.
	Green bool
}

// Healthy kubelets live on.
func Healthy() Life { return Life{Green: true} }

// Refuses is the life of a kubelet that ends because of its configuration.
func Refuses() Life { return Life{Ends: time.Second} }

// Hangs is the life of one that never says that it is healthy.
func Hangs() Life { return Life{} }

// rest is how long systemd waits before it starts a service again, as RestartSec= of kubeadm's unit says.
const rest = 10 * time.Second

// Service is a kubelet of one host. Its life is asked for at each start.
type Service struct {
	Name string
	// Life says how a kubelet that starts now will fare.
	Life func() Life

	now time.Time
	// begun is when the process was started, ended whether it has ended; nobody is running while it is stopped.
	begun            time.Time
	life             Life
	stopped, ended   bool
	starts, restarts int
}

// New has a kubelet that has run for an hour.
func New(name string, life func() Life) *Service {
	s := &Service{Name: name, Life: life, now: time.Unix(0, 0), stopped: true}
	s.Start()
	s.Pass(time.Hour)
	return s
}

// Now is the clock.
func (s *Service) Now() time.Time { return s.now }

// Pass lets time pass, and systemd start again what ends.
func (s *Service) Pass(long time.Duration) {
	const tick = time.Second
	for end := s.now.Add(long); s.now.Before(end); {
		s.now = s.now.Add(min(tick, end.Sub(s.now)))
		switch {
		case s.stopped:
		case s.ended && s.now.Sub(s.begun) >= s.life.Ends+rest:
			s.restarts++
			s.begin()
		case s.life.Ends > 0 && s.now.Sub(s.begun) >= s.life.Ends:
			s.ended = true
		}
	}
}

func (s *Service) begin() {
	s.starts++
	s.begun, s.ended, s.life = s.now, false, s.Life()
}

// Start is systemctl start.
func (s *Service) Start() {
	if s.stopped {
		s.stopped, s.restarts = false, 0
		s.begin()
	}
}

// Stop is systemctl stop.
func (s *Service) Stop() { s.stopped = true }

// Boot is another start of the host.
func (s *Service) Boot() {
	s.Stop()
	s.Start()
}

// Starts is how often a kubelet was started.
func (s *Service) Starts() int { return s.starts }

// Unit is what systemd says of a service; nil for any other.
func (s *Service) Unit(name string) *kubelet.Unit {
	if name != s.Name {
		return nil
	}
	unit := &kubelet.Unit{Name: name, Invocation: strconv.Itoa(s.starts), Restarts: s.restarts}
	switch {
	case s.stopped:
		unit.Active = "inactive"
	case s.ended:
		unit.Active = "activating"
	default:
		unit.Active, unit.Process, unit.Running = "active", 1, s.now.Sub(s.begun)
	}
	return unit
}

// Errors of those who ask for its health.
var (
	errRefused = errors.New("connection refused")
	errSilent  = errors.New("no answer")
)

// Health is what it says at its port.
func (s *Service) Health() error {
	switch {
	case s.stopped, s.ended:
		return errRefused
	case !s.life.Green:
		return errSilent
	default:
		return nil
	}
}

// Tool does what systemctl does with the arguments, where they are about this service.
func (s *Service) Tool(arguments ...string) {
	if len(arguments) == 0 || arguments[len(arguments)-1] != s.Name {
		return
	}
	switch arguments[len(arguments)-2] {
	case "start":
		s.Start()
	case "stop":
		s.Stop()
	default:
	}
}
