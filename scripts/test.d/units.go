package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/strays"
)

// unit is a part of the long suite: tests of one package that run in a process of their own.
type unit struct {
	dir, match string // match is a pattern of -test.run
	race       bool   // the commands that it runs have the race detector, too
}

func (u unit) String() string {
	name := u.dir + " " + strings.NewReplacer("^", "", "$", "").Replace(u.match)
	if u.race {
		name += " (the race detector in every process)"
	}
	return name
}

// scriptsOfUnit is the number of scenarios of a unit.
const scriptsOfUnit = 12

// units are the tests that have a short form, each by itself, and with the race detector in
// every process the scenarios of the program and the suite of the backends.
func units(root string, tests map[string][]string) ([]unit, error) {
	var out []unit
	for _, dir := range slices.Sorted(maps.Keys(tests)) {
		for _, name := range tests[dir] {
			out = append(out, unit{dir: dir, match: "^" + name + "$"})
		}
	}
	for _, b := range []string{"inproc", "pty", "tmux"} {
		out = append(out, unit{dir: "backends/" + b, match: "^TestExercise$", race: true})
	}
	const scenarios = "cmd/teamctl"
	scripts, err := filepath.Glob(filepath.Join(root, scenarios, "testdata", "script", "*.txtar"))
	if err != nil || len(scripts) == 0 {
		return nil, fmt.Errorf("no scenarios in %s: %w", scenarios, err)
	}
	for some := range slices.Chunk(scripts, scriptsOfUnit) {
		names := make([]string, len(some))
		for i, s := range some {
			names[i] = strings.TrimSuffix(filepath.Base(s), ".txtar")
		}
		out = append(out, unit{dir: scenarios, match: "^TestScripts$/^(" + strings.Join(names, "|") + ")$", race: true})
	}
	return out, nil
}

// suite runs units.
type suite struct {
	out   io.Writer
	root  string        // the directory of the module
	limit time.Duration // after which no unit begins; 0: none
	bins  string        // a directory for the test binaries

	mu    sync.Mutex
	total run
	built map[string]func() error // by package
}

// atOnce is the number of units that run side by side. Most of them keep a core busy.
const atOnce = 3

// run runs the units in random order and returns the exit status. It names those that the limit leaves
// out, and every failed one; a slow machine thus runs another part of the suite each time.
func (s *suite) run(all []unit) int {
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	s.total = newRun(s.out)
	s.built = map[string]func() error{}
	for _, u := range all {
		s.built[u.dir] = sync.OnceValue(func() error { return s.build(u.dir) })
	}
	began, status := time.Now(), 0
	next, left := make(chan unit), []unit(nil)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for u := range next {
				if !s.one(u) {
					s.mu.Lock()
					status = 1
					s.mu.Unlock()
				}
			}
		})
	}
	for _, u := range all {
		if s.limit > 0 && time.Since(began) > s.limit {
			left = append(left, u)
			continue
		}
		next <- u
	}
	close(next)
	wg.Wait()
	for _, u := range left {
		fmt.Fprintf(s.out, "left out  %v\n", u)
	}
	fmt.Fprintf(s.out, "%d of %d parts of the long suite have run\n", len(all)-len(left), len(all))
	return status
}

// build makes the test binary of a package, with the flags of scripts/test, by which both share what is
// compiled.
func (s *suite) build(dir string) error {
	cmd := exec.Command("go", "test", "-c", "-race", "-gcflags=all=-dwarf=false", "-vet=off", "-ldflags=-w", "-o", s.binary(dir), "./"+dir)
	cmd.Dir = s.root
	if _, set := os.LookupEnv("CGO_CFLAGS"); !set {
		cmd.Env = append(os.Environ(), "CGO_CFLAGS=-O1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", dir, err, out)
	}
	return nil
}

// binary is the path of a package's test binary. Its base name is what go test gives it, by which tests
// find the same binary without the race detector.
func (s *suite) binary(dir string) string {
	return filepath.Join(s.bins, strings.ReplaceAll(dir, "/", "_"), path.Base(path.Join(module, dir))+".test")
}

// one runs a unit, shows what failed in it, and returns whether it has passed: a unit without a test that
// has passed or was skipped has not.
func (s *suite) one(u unit) bool {
	began := time.Now()
	var text bytes.Buffer
	r := newRun(&text)
	r.quiet = true
	err := s.built[u.dir]()
	if err == nil {
		err = s.exec(u, &r)
	}
	ok := err == nil && len(r.failed) == 0 && r.counts["pass"]+r.counts["skip"] > 0
	word := "ok"
	switch {
	case !ok:
		word = "FAIL"
	case r.counts["pass"] == 0:
		word = "skip"
	}
	if !ok && len(r.failed) == 0 { // it was not built, or TestMain found something
		fmt.Fprintln(&text, err)
		r.counts["fail"]++
		r.failed = append(r.failed, u.String())
	}
	fmt.Fprintf(&text, "%-5s %v %.1f s\n", word, u, time.Since(began).Seconds())
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(text.Bytes())
	s.total.failed = append(s.total.failed, r.failed...)
	for _, action := range []string{"pass", "fail", "skip"} {
		s.total.counts[action] += r.counts[action]
	}
	return ok
}

// exec runs the test binary of a unit and reads its events.
func (s *suite) exec(u unit, r *run) error {
	cmd := exec.Command("go", "tool", "test2json", "-t", "-p", path.Join(module, u.dir), s.binary(u.dir),
		"-test.v=test2json", "-test.paniconexit0", "-test.shuffle=on", "-test.parallel=8", "-test.timeout=85m", "-test.run="+u.match)
	cmd.Dir = filepath.Join(s.root, u.dir)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Env = os.Environ()
	if u.race {
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, strays.EnvCommands+"=") })
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	r.read(out)
	err = cmd.Wait()
	_, _ = r.out.Write(said.Bytes())
	return err
}
