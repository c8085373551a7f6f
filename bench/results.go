package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

const preamble = `# Results

Written by scripts/bench. Each figure is a median of one interleaved run; compare ratios, not milliseconds.
`

// section is one "## title" of the results file.
type section struct{ title, text string }

// update replaces the given sections of the results file, adds those it does not
// have yet at its end, and leaves every other one as it is.
func update(file string, sections []section) error {
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read results: %w", err)
	}
	if err := os.WriteFile(file, []byte(merge(string(old), sections)), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

func merge(old string, sections []section) string {
	var all []section
	for i, part := range strings.Split("\n"+old, "\n## ") {
		if i == 0 {
			continue // the preamble, or nothing
		}
		title, text, _ := strings.Cut(part, "\n")
		all = append(all, section{title: title, text: strings.TrimSpace(text) + "\n"})
	}
	for _, s := range sections {
		if i := slices.IndexFunc(all, func(o section) bool { return o.title == s.title }); i >= 0 {
			all[i] = s
		} else {
			all = append(all, s)
		}
	}
	var b strings.Builder
	b.WriteString(preamble)
	for _, s := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%s", s.title, s.text)
	}
	return b.String()
}

// where is the line that says on what and when a section was measured.
func where(rounds int) string {
	return fmt.Sprintf("%s, %d CPUs, %s/%s, %s, %d rounds.", time.Now().UTC().Format(time.DateOnly),
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), rounds)
}
