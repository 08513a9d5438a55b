// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command thirdparty prints the modules that the project's programs contain, with their licences, as a page of Markdown; with -texts, the
// licences and notices themselves, as images carry them. It fails when one of them has terms that are not on the list of those that the
// project accepts.
//
//	thirdparty [-texts] [-platforms linux/amd64] [FOLDER [PACKAGE ...]]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/hack/image/licences"
)

// accepted are the licences whose terms are met by passing on the licence text with the programs, as the image does.
func accepted() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}
}

// platforms for which programs are released: what a platform's code imports may be on no other.
func platforms() []string {
	return []string{"linux/amd64", "linux/arm64", "darwin/arm64"}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	texts := flag.Bool("texts", false, "print the licences and notices themselves")
	on := flag.String("platforms", strings.Join(platforms(), ","), "the platforms of the programs, with commas between them")
	flag.Parse()
	show := page
	if *texts {
		show = func(modules []licences.Module) string { return string(licences.Texts(modules)) }
	}
	folder, packages := ".", []string{"./cmd/..."}
	if flag.NArg() > 0 {
		folder = flag.Arg(0)
	}
	if flag.NArg() > 1 {
		packages = flag.Args()[1:]
	}
	if err := run(ctx, os.Stdout, show, folder, strings.Split(*on, ","), packages); err != nil {
		fmt.Fprintln(os.Stderr, "thirdparty:", err)
		os.Exit(1) //nolint:gocritic // The signal handler goes with the process.
	}
}

func run(ctx context.Context, out io.Writer, show func([]licences.Module) string, folder string, platforms, packages []string) error {
	modules, err := licences.Of(ctx, folder, platforms, packages...)
	if err != nil {
		return err
	}
	if err := check(modules); err != nil {
		return err
	}
	_, err = io.WriteString(out, show(modules))
	return err
}

// check names each module with a licence that is not accepted.
func check(modules []licences.Module) error {
	var refused []string
	for _, module := range modules {
		for _, licence := range module.Licences {
			if !slices.Contains(accepted(), licence) {
				refused = append(refused, fmt.Sprintf("%s (%s)", module.Path, licence))
			}
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("licences that are not accepted (%s): %s", strings.Join(accepted(), ", "), strings.Join(refused, ", "))
	}
	return nil
}

// page is the list as Markdown.
func page(modules []licences.Module) string {
	var text strings.Builder
	fmt.Fprintf(&text, `<!-- Made by "make generate" from the programs' dependencies; not to be edited. -->
# Third-party modules

The modules that the programs contain (%s), with their licences as SPDX
identifiers. The image has their texts in `+"`/licenses/THIRD-PARTY`"+`, and names the modules with their licences in its bill of materials.
Accepted are %s; "make verify" fails on others.

| Module | Version | Licence |
|---|---|---|
`, strings.Join(platforms(), ", "), strings.Join(accepted(), ", "))
	for _, module := range modules {
		version := module.Version
		if module.Path == licences.StandardLibrary {
			version = "of the compiler"
		}
		fmt.Fprintf(&text, "| %s | %s | %s |\n", module.Path, version, strings.Join(module.Licences, ", "))
	}
	return text.String()
}
