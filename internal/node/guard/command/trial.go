// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

const (
	// lookAgain is the time between two verifications of a host that is not yet as planned: services are still starting.
	lookAgain = 10 * time.Second
	// startLimit is how long a host may take to start before what was interrupted on it is taken back without waiting for it.
	startLimit = 10 * time.Minute
	// liveDeadline bounds the verification of a change without a reboot.
	liveDeadline = time.Minute
	// kubeletDeadline is added where the kubelet was started again for it: it has two minutes, and one more to prove itself.
	kubeletDeadline = 3 * time.Minute
	// hearing is longer than agents let pass between two looks at what the guard says, 30 s unless somebody has chosen another time.
	hearing = 45 * time.Second
)

func (s *session) trialCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "trial",
		Short: "Verify what is on trial, and keep it or take it back; for the unit lowlatency-guard-trial.service",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return s.trial(command.Context()) },
	}
}

// trial looks at the host until it is verified, or its deadline is over. Between two looks somebody may take it back.
func (s *session) trial(ctx context.Context) error {
	for done := false; ; {
		err := s.with(func(g *guard.Guard, m Machine) (err error) {
			done, err = s.look(ctx, g, m)
			return err
		})
		// Whoever is at work may have started this unit, to have the host seen to when that one is killed.
		if err != nil && !errors.Is(err, guard.ErrAtWork) {
			return err
		}
		if done {
			if err := s.continueRemoval(ctx); err != nil {
				return err
			}
			// What has come meanwhile has waited for the end of the trial.
			return s.take(ctx)
		}
		if err := s.pause(ctx, lookAgain); err != nil {
			return err
		}
	}
}

// continueRemoval goes on with the removal that root has asked for before the host was started again.
func (s *session) continueRemoval(ctx context.Context) error {
	return s.with(func(g *guard.Guard, m Machine) error {
		next, continued, err := g.ContinueRemoval(ctx)
		if err != nil || !continued {
			return err
		}
		return s.goOn(ctx, g, m, next, false)
	})
}

func (s *session) look(ctx context.Context, g *guard.Guard, m Machine) (done bool, err error) {
	onTrial, err := g.OnTrial()
	if err != nil {
		return true, err
	}
	isStarting, over, err := s.time(ctx, g, m, onTrial)
	switch {
	case err != nil:
		return true, err
	case isStarting && !over:
		return false, nil
	case onTrial == nil:
		s.watch = nil
		return true, errors.Join(g.Settle(ctx), s.leave(ctx, g, m))
	}
	// A host that has ended in a shell for its administrator has the arguments, too, and nothing else of what it is for.
	if err := m.Tool(ctx, "/usr/bin/systemctl", "is-active", "--quiet", "multi-user.target"); err != nil {
		if over {
			return true, s.giveUp(ctx, g, m, onTrial, instruction.ReasonNotVerified, notInTime+"the host has not started up to multi-user.target")
		}
		return false, nil
	}
	return s.decide(ctx, g, m, onTrial, over)
}

// time tells whether what the guard does at each start is still to come, and whether the time for that and for the verification is over.
func (s *session) time(ctx context.Context, g *guard.Guard, m Machine, onTrial *guard.Trial) (isStarting, over bool, err error) {
	limit := startLimit
	if onTrial != nil {
		limit = time.Duration(onTrial.DeadlineSeconds) * time.Second
	}
	up, err := uptime(m)
	if err != nil {
		return false, false, err
	}
	isStarting, err = g.IsStarting(ctx)
	return isStarting, up >= limit, err
}

// leave reboots a host that still runs the kernel of a trial which was taken back.
func (s *session) leave(ctx context.Context, g *guard.Guard, m Machine) error {
	must, err := g.MustLeave()
	if err != nil || !must {
		return err
	}
	s.say("The host starts with its old arguments: what it was started with is taken back.")
	return m.Tool(ctx, "/usr/bin/systemctl", "--no-block", "reboot")
}

func pause(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("verifying: %w", ctx.Err())
	case <-time.After(long):
		return nil
	}
}

// verifyNow verifies a change without a reboot.
func (s *session) verifyNow(ctx context.Context, g *guard.Guard, m Machine) error {
	onTrial, err := g.OnTrial()
	if err != nil || onTrial == nil {
		return errors.Join(err, errors.New("the change of this host cannot be verified"))
	}
	s.watch = nil
	limit := liveDeadline
	if onTrial.IsKubeletStarted {
		limit += kubeletDeadline
	}
	for start := s.now(); ; {
		done, err := s.decide(ctx, g, m, onTrial, s.now().Sub(start) > limit)
		if err != nil || done {
			return err
		}
		if err := s.pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// decide keeps what is verified, and takes back what is not when its time is over.
func (s *session) decide(ctx context.Context, g *guard.Guard, m Machine, onTrial *guard.Trial, over bool) (done bool, err error) {
	verdict, problem, err := s.seeKubelet(ctx, g, onTrial)
	// A healthy one is proven within a minute, or it is not healthy any more.
	isUp := verdict == kubelet.Open && s.watch.IsGreen()
	switch {
	case err != nil:
		return false, err
	case verdict == kubelet.Open && (isUp || !over):
		return false, nil
	case verdict != kubelet.Healthy:
		return true, s.giveUp(ctx, g, m, onTrial, instruction.ReasonKubeletUnhealthy, "the kubelet is not healthy with it: "+problem)
	}
	return s.decideHost(ctx, g, m, onTrial, over)
}

// decideHost decides once the kubelet is proven.
func (s *session) decideHost(ctx context.Context, g *guard.Guard, m Machine, onTrial *guard.Trial, over bool) (done bool, err error) {
	problems, err := s.verify(ctx, g, onTrial)
	if err != nil {
		problems = []string{err.Error()}
	}
	switch {
	case len(problems) == 0:
		s.watch = nil
		if err := s.keep(ctx, g); err != nil {
			return true, err
		}
		s.say("Verified, and kept.")
		return true, s.leaveIfUnused(ctx, g)
	case over:
		return true, s.giveUp(ctx, g, m, onTrial, instruction.ReasonNotVerified, notInTime+sorted(problems))
	default:
		s.await(sorted(problems))
		return false, nil
	}
}

// keep makes what was verified permanent. Of a host that is given back and not as before, the agent of the node has time to read what the
// guard then forgets.
func (s *session) keep(ctx context.Context, g *guard.Guard) error {
	if err := g.MakePermanent(ctx); err != nil {
		return err
	}
	isToBeHeard, err := g.IsToBeHeard()
	if err != nil {
		return err
	}
	if isToBeHeard {
		if err := s.pause(ctx, hearing); err != nil {
			return err
		}
	}
	return g.Complete()
}

// notInTime begins what is said of a host whose time is over.
const notInTime = "it was not verified in time: "

// seeKubelet looks once more at a kubelet that was healthy before. Where there was none, there is nothing to prove. What is tried has
// one watch: another trial follows another run of the guard.
func (s *session) seeKubelet(ctx context.Context, g *guard.Guard, onTrial *guard.Trial) (kubelet.Verdict, string, error) {
	if onTrial.Kubelet == "" {
		return kubelet.Healthy, "", nil
	}
	if s.watch == nil {
		s.watch = &kubelet.Watch{IsStarted: onTrial.IsKubeletStarted}
	}
	sight, err := g.SeeKubelet(ctx, onTrial.Kubelet)
	if err != nil {
		return kubelet.Open, "", err
	}
	verdict, problem := s.watch.Look(s.now(), sight)
	return verdict, problem, nil
}

// await says what is awaited of the host, once until it changes: who looks at a host on trial sees why it takes so long.
func (s *session) await(problems string) {
	if problems != s.awaited {
		s.say("Not verified yet: %s", problems)
	}
	s.awaited = problems
}

// giveUp takes everything back. Where even that fails, another start brings the old arguments: they are the default. A host whose
// arguments are as before does not reboot for that.
func (s *session) giveUp(ctx context.Context, g *guard.Guard, m Machine, onTrial *guard.Trial, cause instruction.Reason, problems string) error {
	s.watch = nil
	next, err := g.TakeBack(ctx, cause, problems)
	if err != nil && !onTrial.OtherLine {
		return fmt.Errorf("taking back what was not verified: %w", err)
	}
	if err == nil && next != guard.Reboot {
		return errors.Join(errors.New("taken back: "+problems), s.proveRestored(ctx, g))
	}
	s.say("The host starts with its old arguments: %s", problems)
	return errors.Join(err, m.Tool(ctx, "/usr/bin/systemctl", "--no-block", "reboot"))
}

// proveRestored finds out whether a kubelet that was started again with what was there before is healthy, by the same rule as before,
// and notes it.
func (s *session) proveRestored(ctx context.Context, g *guard.Guard) error {
	unit, err := g.Restored()
	if err != nil || unit == "" {
		return err
	}
	watch := &kubelet.Watch{IsStarted: true}
	for {
		sight, err := g.SeeKubelet(ctx, unit)
		if err != nil {
			return err
		}
		verdict, problem := watch.Look(s.now(), sight)
		switch verdict {
		case kubelet.Healthy:
			s.say("With what was there before, the kubelet is healthy again.")
			return g.NoteRestored("")
		case kubelet.Broken:
			return errors.Join(errors.New("with what was there before, the kubelet is not healthy any more either: "+problem), g.NoteRestored(problem))
		case kubelet.Open:
		}
		if err := s.pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

func uptime(m Machine) (time.Duration, error) {
	text, err := m.Get("/proc/uptime")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(text, " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("reading how long the host is up: %w", err)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// verify returns what is not as it is to be: of the operations, and of the plan.
func (s *session) verify(ctx context.Context, g *guard.Guard, onTrial *guard.Trial) ([]string, error) {
	problems, err := g.CheckWritten()
	if err != nil || len(problems) > 0 || len(onTrial.Plan) == 0 || string(onTrial.Plan) == "null" {
		return problems, err
	}
	planned := &plan.NodePlan{}
	if err := json.Unmarshal(onTrial.Plan, planned); err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	opened, err := host.Open(s.root)
	if err != nil {
		return nil, fmt.Errorf("reading the host: %w", err)
	}
	facts, err := opened.ReadWith(ctx, verify.Requests(planned))
	if err = errors.Join(err, opened.Close()); err != nil {
		return nil, fmt.Errorf("reading the host: %w", err)
	}
	return judge(planned, facts), nil
}

// judge names what of the plan needs another kernel still, and which critical checks have failed. Checks of less weight are
// reported, and no reason to take a host away from its plan.
func judge(planned *plan.NodePlan, facts *host.Facts) []string {
	var problems []string
	for _, change := range plan.DiffRunning(facts, planned).Items {
		if change.Reboot == v1alpha1.RebootRequired {
			problems = append(problems, fmt.Sprintf("%s is %q and is to be %q", change.What, change.From, change.To))
		}
	}
	report := verify.Evaluate(verify.Input{Plan: planned, Facts: facts})
	for _, result := range report.Results {
		if result.Outcome == v1alpha1.OutcomeFailed && result.Check.Severity == v1alpha1.SeverityCritical {
			problems = append(problems, string(result.Check.ID)+": "+result.Message)
		}
	}
	return problems
}
