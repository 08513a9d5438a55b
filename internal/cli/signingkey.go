// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/signingkey"
)

// keyOptions say which operator's key is meant.
type keyOptions struct {
	access    clusterAccess
	namespace string
	// isLost makes a key that nothing signs.
	isLost bool
}

func (o *keyOptions) addFlags(command *cobra.Command) {
	command.Flags().StringVarP(&o.namespace, "namespace", "n", "lowlatency-operator-system", "`NAMESPACE` of the operator")
	o.access.addFlags(command.Flags())
}

// signingKeyCommand is the group of commands about the key that signs instructions for ordinary hosts.
func (a *app) signingKeyCommand() *cobra.Command {
	command := usage.Group(&cobra.Command{
		Use:   "signing-key",
		Short: "Show which hosts trust the key that signs instructions for them, and put another in its place",
		Long: `Show which hosts trust the key by which the operator signs instructions for the guards of ordinary hosts, and put
another key in its place. Both need the right to read the operator's Secret, and rotate the right to write it: with
it, one is root of these hosts.`,
	})
	command.AddCommand(a.showKeyCommand(), a.rotateKeyCommand())
	return command
}

func (a *app) showKeyCommand() *cobra.Command {
	options := &keyOptions{}
	command := &cobra.Command{
		Use:   "show",
		Short: "Show the operator's key, and which key the guard of each node trusts",
		Long: `Show the operator's public key, and of each node with a guard whether that takes instructions of this key, of one
before it, or of a strange one. A key that was leaked is of use to a thief until no node trusts one before it any
more.

Exit codes: 0 all guards take instructions of the operator's key; 1 one does not; 3 one does not say so.`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			core, own, err := options.connect()
			if err != nil {
				return err
			}
			key, err := readKey(command.Context(), core, options.namespace)
			if err != nil {
				return err
			}
			return a.showKey(command.Context(), own, key)
		},
	}
	options.addFlags(command)
	return command
}

func (a *app) rotateKeyCommand() *cobra.Command {
	options := &keyOptions{}
	command := &cobra.Command{
		Use:   "rotate",
		Short: "Put another key in the place of the one that signs instructions",
		Long: `Make another key, sign it with the one before, and write both to the operator's Secret in one step. The key before is
of no use from then on, and is not kept. The operator tells each guard within minutes, without a cordon or a reboot; a
node that is away is told when it is back.

--lost makes a key that nothing signs, when the Secret is gone: each guard is then to be told on its host, by the
command that the profile's status names.`,
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.rotateKey(command.Context(), options)
		},
	}
	options.addFlags(command)
	command.Flags().BoolVar(&options.isLost, "lost", false, "make a key although the one before is gone")
	return command
}

func (o *keyOptions) connect() (core, own *rest.RESTClient, err error) {
	if core, err = o.access.connectCore(); err != nil {
		return nil, nil, err
	}
	own, err = o.access.connect()
	return core, own, err
}

func readSecret(ctx context.Context, core *rest.RESTClient, namespace string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := core.Get().Namespace(namespace).Resource("secrets").Name(signingkey.SecretName).Do(ctx).Into(secret)
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, signingkey.SecretName, err)
	}
	return secret, nil
}

func readKey(ctx context.Context, core *rest.RESTClient, namespace string) (*signingkey.Key, error) {
	secret, err := readSecret(ctx, core, namespace)
	if err != nil {
		return nil, err
	}
	return signingkey.Read(secret)
}

// showKey prints the key and who trusts it.
func (a *app) showKey(ctx context.Context, own *rest.RESTClient, key *signingkey.Key) error {
	var nodes []v1alpha1.LowLatencyNode
	if err := eachNode(ctx, own, func(node *v1alpha1.LowLatencyNode) { nodes = append(nodes, *node) }); err != nil {
		return err
	}
	text, verdict := keyTable(key, nodes)
	if _, err := fmt.Fprint(a.Out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return verdict
}

// keyTable says which key each guard trusts.
func keyTable(key *signingkey.Key, nodes []v1alpha1.LowLatencyNode) (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "Key %s, number %d, public key %s\n\n", key.Last.ID(), key.Last.Serial, instruction.FormatKey(key.Last.Public))
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NODE\tKEY\tNUMBER\tSTANDING")
	var verdict error
	for i := range nodes {
		enacted := nodes[i].Status.Enactment
		if enacted == nil {
			continue
		}
		standing := key.StandingOf(enacted)
		id, serial := "-", "-"
		if enacted.Key != nil {
			id = enacted.Key.ID
		}
		if enacted.Key != nil && enacted.Key.Serial > 0 {
			serial = strconv.FormatInt(enacted.Key.Serial, 10)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", nodes[i].Name, id, serial, standing)
		switch {
		case standing == signingkey.Former || standing == signingkey.Strange:
			verdict = errFindings
		case standing == signingkey.Unknown && verdict == nil:
			verdict = errUnknown
		}
	}
	_ = table.Flush()
	return text.String(), verdict
}

// mayRotate says why the key of a Secret, which was read with err, does not sign another one.
func mayRotate(secret *corev1.Secret, err error, options *keyOptions) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: restore it from a backup, or give --lost when it is lost for good and hosts have to be told by hand", err)
	case err != nil:
		return err
	case options.isLost:
		return fmt.Errorf("secret %s/%s is there: without --lost, its key signs the next one, and no host has to be told by hand", options.namespace, signingkey.SecretName)
	case secret.Immutable != nil && *secret.Immutable:
		return errors.New("the Secret is immutable, as operators before this one made it: save it, delete it and create it again without \"immutable: true\" " +
			"while the operator is scaled to zero")
	}
	return nil
}

// rotateKey writes the next key.
func (a *app) rotateKey(ctx context.Context, options *keyOptions) error {
	core, _, err := options.connect()
	if err != nil {
		return err
	}
	secret, err := readSecret(ctx, core, options.namespace)
	if apierrors.IsNotFound(err) && options.isLost {
		return a.replaceLostKey(ctx, core, options.namespace)
	}
	if err := mayRotate(secret, err, options); err != nil {
		return err
	}
	key, err := signingkey.Read(secret)
	if err != nil {
		return err
	}
	next, err := key.Next(rand.Reader)
	if err != nil {
		return err
	}
	secret.Data = next.Secret(options.namespace).Data
	// The version of the Secret that was read goes with it: of two people who do this at once, one is refused.
	err = core.Put().Namespace(options.namespace).Resource("secrets").Name(signingkey.SecretName).Body(secret).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("writing the next key: %w", err)
	}
	return a.tellRotated(fmt.Sprintf("Key %s has taken the place of %s. The operator tells the guards within minutes: see kubectl lowlatency signing-key show.\n"+
		"Save the Secret %s/%s with your backups, and destroy older copies when no node trusts a former key.\n",
		next.Last.ID(), key.Last.ID(), options.namespace, signingkey.SecretName))
}

func (a *app) replaceLostKey(ctx context.Context, core *rest.RESTClient, namespace string) error {
	key, err := signingkey.New(rand.Reader)
	if err != nil {
		return err
	}
	if err := core.Post().Namespace(namespace).Resource("secrets").Body(key.Secret(namespace)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("writing the key: %w", err)
	}
	return a.tellRotated(fmt.Sprintf("Key %s was made. On each host whose guard trusts the lost one, run:\n\n  lowlatency-guard trust %s\n",
		key.Last.ID(), instruction.FormatKey(key.Last.Public)))
}

func (a *app) tellRotated(text string) error {
	if _, err := fmt.Fprint(a.Out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
