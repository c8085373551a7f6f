package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// memory of a process, in MB.
type memory struct{ resident, private float64 }

func memoryOf(pid int) (memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return memory{}, err
	}
	var m memory
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			continue // the first line has addresses
		}
		switch f[0] {
		case "Rss:":
			m.resident = kb / 1024
		case "Private_Clean:", "Private_Dirty:":
			m.private += kb / 1024
		}
	}
	return m, nil
}

// activity of processes: time on a core, and how often they went to sleep of their
// own accord, which is how often they were woken.
type activity struct {
	busy  time.Duration
	wakes int
}

func activityOf(pids []int) (activity, error) {
	var a activity
	for _, pid := range pids {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err != nil {
			return a, err
		}
		if len(tasks) == 0 {
			return a, fmt.Errorf("process %d is gone", pid)
		}
		for _, t := range tasks {
			b, err := os.ReadFile(filepath.Join(t, "schedstat"))
			if err != nil {
				return a, err
			}
			ns, _, _ := strings.Cut(string(b), " ")
			n, err := strconv.ParseInt(ns, 10, 64)
			if err != nil {
				return a, err
			}
			a.busy += time.Duration(n)
			b, err = os.ReadFile(filepath.Join(t, "status"))
			if err != nil {
				return a, err
			}
			for line := range strings.Lines(string(b)) {
				if v, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
					n, err := strconv.Atoi(strings.TrimSpace(v))
					if err != nil {
						return a, err
					}
					a.wakes += n
				}
			}
		}
	}
	return a, nil
}

// since is what happened after an earlier look.
func (a activity) since(b activity) activity { return activity{a.busy - b.busy, a.wakes - b.wakes} }

// childrenOf are the processes that pid has started itself, those whose command line
// holds the word, if one is given.
func childrenOf(pid int, word string) ([]int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	var out []int
	for _, l := range lists {
		b, err := os.ReadFile(l)
		if err != nil {
			return nil, err
		}
		for _, f := range strings.Fields(string(b)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				return nil, err
			}
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", n))
			if err == nil && slices.ContainsFunc(bytes.Split(line, []byte{0}), func(arg []byte) bool { return word == "" || string(arg) == word }) {
				out = append(out, n)
			}
		}
	}
	return out, nil
}
