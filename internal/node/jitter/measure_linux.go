// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build amd64 || arm64

package jitter

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// calibrationTolerance is how far two measurements of the counter's frequency may lie apart, as in sysjitter.
const calibrationTolerance = 1e-3

// moment is one moment on the kernel's clock and on the cycle counter.
type moment struct {
	nanoseconds int64
	counter     uint64
}

// takeMoment reads the clock between two readings of the counter, again until nothing came between them.
func takeMoment() (moment, error) {
	best, narrowest := moment{}, uint64(math.MaxUint64)
	for range 100 {
		before := readCounter()
		now, err := monotonic()
		if err != nil {
			return moment{}, err
		}
		if after := readCounter(); after-before < narrowest {
			narrowest = after - before
			best = moment{now, before + narrowest/2}
		}
	}
	return best, nil
}

func hertzBetween(a, b moment) float64 {
	return float64(b.counter-a.counter) * 1e9 / float64(b.nanoseconds-a.nanoseconds)
}

// calibrate measures the frequency of the counter until two measurements agree.
func calibrate() (clock, error) {
	const tries, pause = 20, 20 * time.Millisecond
	start, err := takeMoment()
	if err != nil {
		return clock{}, err
	}
	if hertz := counterHertz(); hertz > 0 {
		return clock{float64(hertz), start.counter, start.nanoseconds}, nil
	}
	last := 0.0
	for range tries {
		time.Sleep(pause)
		end, err := takeMoment()
		if err != nil {
			return clock{}, err
		}
		hertz := hertzBetween(start, end)
		if last > 0 && math.Abs(hertz-last) < calibrationTolerance*hertz {
			return clock{hertz, start.counter, start.nanoseconds}, nil
		}
		last, start = hertz, end
	}
	return clock{}, fmt.Errorf("the frequency of the time-stamp counter differs by more than %g from one reading to the next: "+
		"this machine has no steady counter to measure with", calibrationTolerance)
}

// Threads are the measuring threads by CPU, of the process PID.
type Threads struct {
	PID     int         `json:"pid"`
	Threads map[int]int `json:"threads"`
}

// measureHere measures in this process, which must have no other work: the Go runtime of the process is stopped from
// collecting garbage, and asynchronous preemption must be off (GODEBUG=asyncpreemptoff=1), because it would appear
// as jitter. All other threads must already be kept to other CPUs. The function ready is called when all threads
// are on their CPUs, before the measurement, and ended when all have measured and are still there.
func measureHere(request Request, ready func(Threads) error, ended func() error) (*Result, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(len(request.CPUs) + 1)
	c, err := calibrate()
	if err != nil {
		return nil, err
	}
	m := &measurement{request: request, clock: c, counters: findSMIs("/"), probes: make([]probe, len(request.CPUs))}
	if err := m.run(ready, ended); err != nil {
		return nil, err
	}
	return m.result()
}

// measurement is one run on several CPUs.
type measurement struct {
	request Request
	clock   clock
	// counters are those of system management interrupts.
	counters *smiCounters
	probes   []probe
	begun    moment
}

// probe is the thread on one CPU.
type probe struct {
	cpu    int
	thread int
	state  spinState
	gaps   []gap
	locked string
	// counter of system management interrupts of the CPU, and what it counted.
	counter *smiCounter
	smis    counted.ManagementInterrupts
	err     error
}

// run starts all threads, lets them warm up, and measures with all of them at the same time. The threads live until ended has returned.
func (m *measurement) run(ready func(Threads) error, ended func() error) error {
	warm, measured, released := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var warmed, finished, done sync.WaitGroup
	finished.Add(len(m.probes))
	for i := range m.probes {
		p := &m.probes[i]
		p.cpu = m.request.CPUs[i]
		warmed.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			p.prepare(m)
			warmed.Done()
			<-warm
			p.warmUp(m)
			warmed.Done()
			<-measured
			p.measure()
			finished.Done()
			<-released
		})
	}
	warmed.Wait()
	threads, err := m.threads()
	warmed.Add(len(m.probes))
	close(warm)
	warmed.Wait()
	if err == nil {
		err = ready(threads)
	}
	if err == nil {
		err = m.begin()
	}
	close(measured)
	finished.Wait()
	if err == nil {
		err = ended()
	}
	close(released)
	done.Wait()
	return err
}

// threads says which thread measures which CPU.
func (m *measurement) threads() (Threads, error) {
	all := Threads{PID: unix.Getpid(), Threads: map[int]int{}}
	for i := range m.probes {
		p := &m.probes[i]
		if p.err != nil {
			return Threads{}, p.err
		}
		all.Threads[p.cpu] = p.thread
	}
	return all, nil
}

// begin sets the same deadline for all threads.
func (m *measurement) begin() error {
	begun, err := takeMoment()
	if err != nil {
		return err
	}
	m.begun = begun
	for i := range m.probes {
		m.probes[i].state.deadline = begun.counter + m.ticks(m.request.Duration)
	}
	return nil
}

func (m *measurement) ticks(d time.Duration) uint64 {
	return uint64(d.Seconds() * m.clock.hertz)
}

// prepare moves the thread to its CPU, and opens there what counts system management interrupts. It stays there: the thread ends with the goroutine.
func (p *probe) prepare(m *measurement) {
	var only unix.CPUSet
	only.Set(p.cpu)
	p.thread = unix.Gettid()
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		p.err = fmt.Errorf("moving to CPU %d: %w", p.cpu, err)
		return
	}
	p.counter = m.counters.open(p.cpu)
	priority := m.request.Priority
	if priority == 0 {
		return
	}
	attributes := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: uint32(priority)}
	if err := unix.SchedSetAttr(0, attributes, 0); err != nil {
		p.err = fmt.Errorf("setting SCHED_FIFO %d on CPU %d: %w", priority, p.cpu, err)
	}
}

// warmUp runs the loop once, and makes and touches a record of the size that it suggests.
func (p *probe) warmUp(m *measurement) {
	if p.err != nil {
		return
	}
	threshold := m.ticks(m.request.Threshold)
	rehearsal := spinState{deadline: readCounter() + m.ticks(m.request.WarmUp), threshold: threshold, gaps: &gap{}}
	spin(&rehearsal)
	room := m.request.room(rehearsal.interruptions)
	p.gaps = make([]gap, room)
	for i := range p.gaps {
		p.gaps[i] = gap{1, 1}
	}
	p.locked = lock(p.gaps)
	p.state = spinState{threshold: threshold, gaps: &p.gaps[0], capacity: uint64(room)}
}

// lock keeps the record in memory. It is all that the loop touches: locking the whole process would reserve what
// the Go runtime merely has addresses for.
func lock(gaps []gap) string {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&gaps[0])), len(gaps)*int(unsafe.Sizeof(gap{})))
	if err := unix.Mlock(bytes); err != nil {
		return "not locked: " + err.Error()
	}
	return "locked"
}

func (p *probe) measure() {
	if p.err == nil && p.state.deadline != 0 {
		p.smis = p.counter.while(func() { spin(&p.state) })
	}
	p.counter.close()
}

// result sums up after the run.
func (m *measurement) result() (*Result, error) {
	ended, err := takeMoment()
	if err != nil {
		return nil, err
	}
	result := &Result{
		CounterHertz:               m.clock.hertz,
		CalibrationPartsPerMillion: 1e6 * math.Abs(hertzBetween(m.begun, ended)-m.clock.hertz) / m.clock.hertz,
		ThresholdNanoseconds:       m.request.Threshold.Nanoseconds(),
		MemoryLocked:               m.probes[0].locked,
		Scheduling:                 "SCHED_OTHER",
	}
	if m.request.Priority > 0 {
		result.Scheduling = fmt.Sprintf("SCHED_FIFO %d", m.request.Priority)
	}
	// From here on the moments count that lie around the whole run: they know the frequency best.
	c := clock{hertzBetween(m.begun, ended), m.begun.counter, m.begun.nanoseconds}
	var all error
	for i := range m.probes {
		p := &m.probes[i]
		one, err := summarize(p.cpu, &p.state, p.gaps, c)
		all = errors.Join(all, err)
		one.ManagementInterrupts = &p.smis
		result.CPUs = append(result.CPUs, one)
	}
	return result, all
}
