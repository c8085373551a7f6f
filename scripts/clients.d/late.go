package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/team"
)

// lateVersion checks a program that does not print its version in time, as on a busy machine: it
// gets its mail in mid-turn nevertheless, and once the version is known nothing is lost or doubled.
func lateVersion(ctx context.Context, w *world, c agentlab.Client) (note string, err error) {
	dir := filepath.Join(w.Dir, "late")
	program, said := filepath.Join(dir, c.Name), filepath.Join(dir, "said-"+c.Name)
	text := fmt.Sprintf("#!/bin/bash\ncase $* in --version) until test -e %s; do read -t 0.2 <> <(:); done ;; esac\nexec %s \"$@\"\n",
		said, filepath.Join(w.Dir, "bin", c.Name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil { // a program
		return "", err
	}
	first := w.token("late")
	if _, err := w.teamctl(ctx, "spawn", "late", "--agent", c.Name, "--session", "--prompt", "@@say "+first,
		"--env", "TEAMCTL_PROGRAM_"+strings.ToUpper(c.Name)+"="+program); err != nil {
		return "", err
	}
	defer func() {
		_, kerr := w.teamctl(context.WithoutCancel(ctx), "kill", "late")
		err = errors.Join(err, kerr)
	}()
	if err := w.trustsNew(ctx, c, "late"); err != nil {
		return "", err
	}
	if _, err := w.answered(ctx, first); err != nil {
		return "", err
	}
	if note, err = w.midTurn(ctx, "late"); err != nil {
		return "", err
	}
	if err := os.WriteFile(said, nil, 0o600); err != nil {
		return "", err
	}
	file := filepath.Join(string(team.Home{Dir: w.Teams}.Team("demo").Bundle("late")), "version.json")
	if err := w.until(ctx, "learned", func() (bool, error) {
		var learned struct{ Version string }
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &learned)
		}
		if err == nil && learned.Version != c.Version {
			err = fmt.Errorf("its version is %q", learned.Version)
		}
		return err == nil, err
	}); err != nil {
		return "", err
	}
	if _, err := w.midTurn(ctx, "late"); err != nil {
		return "", err
	}
	token := w.token("known")
	id, err := w.sendTo(ctx, "late", "@@say "+token)
	if err != nil {
		return "", err
	}
	if _, err := w.answered(ctx, token); err != nil {
		return "", err
	}
	if n := w.arrivals("@@say " + token); n != 1 {
		return "", fmt.Errorf("it came %d times", n)
	}
	return note, w.delivered(ctx, id)
}
