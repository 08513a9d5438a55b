// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/supportreport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/version"
)

const (
	// progressInterval is after what time people are told what is being done, and how often.
	progressInterval = 2 * time.Second
	// snapshotTimeout bounds how long an agent may take for a snapshot, and maximumSnapshot its size in bytes.
	snapshotTimeout = 2 * time.Minute
	maximumSnapshot = 64 << 20
)

// reportOptions are the flags of report.
type reportOptions struct {
	output, directory string
	nodes             []string
	redacted          bool
	namespace, agents string
	access            clusterAccess
}

func (a *app) reportCommand() *cobra.Command {
	options := &reportOptions{}
	command := &cobra.Command{
		Use:   "report -o FILE [--node NAME]...",
		Short: "Gather what somebody needs to help with a cluster into one archive",
		Long: `Gather into one .tar.gz, for somebody who is to help: profiles, pools and LowLatencyNodes with their conditions, what
the operator has made of them (MachineConfigs, KubeletConfigs, TuneD profiles, RuntimeClasses, plans, DaemonSets), its
pods, Leases and events, LatencyTests with their Jobs, pods and events, and for each --node the full report of its
agent and a snapshot of its host, which check and node take as --root.

Secrets are not asked for, and users and passwords in URLs are left out. With --redact, other names take the place of
those of nodes, pods, containers, and namespaces of pods and LatencyTests, as in redacted snapshots, and addresses and
the values of kernel arguments that are not about the kernel are left out. What could not be read is said in
README.txt of the archive.`,
		Example: `  kubectl lowlatency report -o report.tar.gz
  kubectl lowlatency report --redact --node worker-1 --node worker-2 -o report.tar.gz
  kubectl lowlatency report --directory /must-gather`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.report(cmd.Context(), options) },
	}
	flags := command.Flags()
	flags.StringVarP(&options.output, "output", "o", "", "`FILE` to write, such as report.tar.gz; - for the standard output")
	flags.StringVar(&options.directory, "directory", "", "`FOLDER` in which the files of the report are written instead, as for must-gather")
	flags.StringSliceVar(&options.nodes, "node", nil, "`NAME` of a node whose agent is asked for its full report and a snapshot; may be repeated")
	flags.BoolVar(&options.redacted, "redact", false, "put other names in the place of those that tell whose cluster it is")
	flags.StringVarP(&options.namespace, "namespace", "n", defaultNamespace, "`NAMESPACE` of the operator in the cluster")
	flags.StringVar(&options.agents, "agent-namespace", heartbeat.DefaultNamespace, "`NAMESPACE` of the agents in the cluster")
	options.access.addFlags(flags)
	register(command, "node", forFlag(func(ctx context.Context) ([]string, error) { return a.nodeNames(ctx, nil, &options.access) }))
	return command
}

func (a *app) report(ctx context.Context, options *reportOptions) error {
	if (options.output == "") == (options.directory == "") {
		return errors.New("say where the report goes, for example with -o report.tar.gz or --directory FOLDER")
	}
	reader, err := options.access.reader()
	if err != nil {
		return err
	}
	now := time.Now()
	progress := startProgress(a.Streams, progressInterval)
	defer progress.stop()
	what := supportreport.Options{
		Namespace: options.namespace, AgentNamespace: options.agents, Nodes: options.nodes, Redacted: options.redacted,
		List: listObjects(reader), Progress: progress.say, Time: now,
		Program: "kubectl lowlatency " + version.Of(a.release).String(),
		Report: func(ctx context.Context, node string) ([]byte, error) {
			ctx, cancel := context.WithTimeout(ctx, reportTimeout)
			defer cancel()
			full, err := fetchReport(ctx, &options.access, options.agents, node)
			if err != nil {
				return nil, err
			}
			return json.MarshalIndent(full, "", "  ")
		},
		Snapshot: func(ctx context.Context, node string) ([]byte, error) {
			ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
			defer cancel()
			return fetchSnapshot(ctx, &options.access, options.agents, node, options.redacted)
		},
	}
	sum, err := a.writeReport(ctx, what, options)
	if err != nil {
		return err
	}
	progress.stop()
	a.complainOfReport(sum, options)
	return nil
}

// writeReport writes the report to where it is to go.
func (a *app) writeReport(ctx context.Context, what supportreport.Options, options *reportOptions) (sum supportreport.Summary, err error) {
	if options.directory != "" {
		folder, err := supportreport.NewDirectory(options.directory)
		if err != nil {
			return sum, err
		}
		sum, err = supportreport.Write(ctx, what, folder)
		return sum, errors.Join(err, folder.Close())
	}
	write := func(to io.Writer) error {
		archive := supportreport.NewArchive(to, what.Time)
		sum, err = supportreport.Write(ctx, what, archive)
		return errors.Join(err, archive.Close())
	}
	if options.output == "-" {
		// An archive that nothing could be written into is no archive.
		return sum, write(a.Out)
	}
	return sum, writeSnapshot(write, options.output)
}

// complainOfReport says what was written, and what people are to look through before they pass it on.
func (a *app) complainOfReport(sum supportreport.Summary, options *reportOptions) {
	target := options.output
	if options.directory != "" {
		target = options.directory + string(os.PathSeparator) + supportreport.Folder
	}
	objects := make([]string, 0, len(sum.Objects))
	for _, folder := range slices.Sorted(maps.Keys(sum.Objects)) {
		objects = append(objects, fmt.Sprintf("%d %s", sum.Objects[folder], folder))
	}
	a.complain("%s holds %d files, %d KiB unpacked: %s.", target, sum.Files, (sum.Bytes+1023)/1024, strings.Join(objects, ", "))
	for _, problem := range sum.Problems {
		a.complain("  missing: %s", problem)
	}
	a.complain("Look through these before you pass it on:\n  objects/: what you have named and annotated yourselves, resource names, events\n" +
		"  objects/operator/pods, objects/agents/pods: images and registries, environment variables")
	if len(options.nodes) > 0 {
		a.complain("  nodes/*/report.json: pods and containers that own CPUs\n  nodes/*/snapshot.tar.gz: what kubectl lowlatency snapshot names")
	}
	if !options.redacted {
		a.complain("--redact puts other names in the place of those of nodes, pods and containers, and leaves addresses out.")
	}
}

// reader returns a client for objects of any kind.
func (c *clusterAccess) reader() (*rest.RESTClient, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	if config.Timeout == 0 {
		config.Timeout = clusterTimeout
	}
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	connected, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return connected, nil
}

// listObjects reads lists page by page.
func listObjects(reader *rest.RESTClient) supportreport.Lister {
	return func(ctx context.Context, path, selector string, each func(map[string]any)) error {
		for next := ""; ; {
			request := reader.Get().AbsPath(path).Param("limit", strconv.Itoa(pageSize))
			if selector != "" {
				request.Param("labelSelector", selector)
			}
			if next != "" {
				request.Param("continue", next)
			}
			content, err := request.Do(ctx).Raw()
			if err != nil {
				return err
			}
			var list struct {
				Kind       string           `json:"kind"`
				APIVersion string           `json:"apiVersion"`
				Metadata   metav1.ListMeta  `json:"metadata"`
				Items      []map[string]any `json:"items"`
			}
			if err := json.Unmarshal(content, &list); err != nil {
				return fmt.Errorf("reading the list: %w", err)
			}
			for _, object := range list.Items {
				// Items of lists of Kubernetes' own kinds do not say what they are.
				object["apiVersion"], object["kind"] = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
				each(object)
			}
			if next = list.Metadata.Continue; next == "" {
				return nil
			}
		}
	}
}

// fetchSnapshot asks the agent of a node for a snapshot of its host.
func fetchSnapshot(ctx context.Context, access *clusterAccess, namespace, node string, redacted bool) ([]byte, error) {
	connect, pod, err := connectAgent(ctx, access, namespace, node)
	if err != nil {
		return nil, err
	}
	path := nodereport.SnapshotPath
	if redacted {
		path = nodereport.RedactedSnapshotPath
	}
	content, err := askSnapshot(ctx, connect, path)
	if err != nil {
		return nil, fmt.Errorf("asking pod %q: %w", pod, err)
	}
	return content, nil
}

// askSnapshot asks for a snapshot, until the context ends.
func askSnapshot(ctx context.Context, connect connector, path string) (content []byte, err error) {
	err = askAgentFor(ctx, connect, path, maximumSnapshot, func(response *http.Response) error {
		if response.StatusCode == http.StatusNotFound {
			return supportreport.ErrSnapshotMissing
		}
		if response.StatusCode != http.StatusOK {
			return refusal(response)
		}
		content, err = io.ReadAll(bufio.NewReader(response.Body))
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(content) == 0 {
		return nil, errors.New("the snapshot is empty")
	}
	return content, nil
}

// progress tells people what is being done, when that takes longer than they may wait without a word.
type progress struct {
	streams Streams
	mutex   sync.Mutex
	doing   string
	began   time.Time
	ticker  *time.Ticker
	done    chan struct{}
	ended   sync.WaitGroup
	once    sync.Once
}

// startProgress begins to tell. The caller must stop it.
func startProgress(streams Streams, interval time.Duration) *progress {
	p := &progress{streams: streams, began: time.Now(), ticker: time.NewTicker(interval), done: make(chan struct{})}
	p.ended.Go(func() {
		for {
			select {
			case <-p.done:
				return
			case <-p.ticker.C:
				p.mutex.Lock()
				doing := p.doing
				p.mutex.Unlock()
				p.streams.complain("%s ... %d s", doing, int(time.Since(p.began).Seconds()))
			}
		}
	})
	return p
}

// say notes what is done now.
func (p *progress) say(doing string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.doing = doing
}

// stop ends the telling.
func (p *progress) stop() {
	p.once.Do(func() {
		p.ticker.Stop()
		close(p.done)
	})
	p.ended.Wait()
}
