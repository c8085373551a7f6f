package main

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// agree asks for consent to the commands of a file if the file is in a repository: whoever cloned
// the repository has not written them. A person consents once to exactly these commands, by an
// answer at a terminal or else by --agree. again is the command line to which the hint adds that
// flag. agreed reports that consent was given now.
func (a *app) agree(ctx context.Context, env *tool.Env, c tool.Caller, file string, commands []string, now bool, again string) (agreed bool, err error) {
	repo, err := repositoryOf(file)
	if err != nil || repo == "" || len(commands) == 0 {
		return false, err
	}
	ok, err := env.Agreed(ctx, c, repo, commands, now)
	if err != nil || ok {
		return now, err
	}
	if a.atTerminal() && c.Person {
		a.out.line("%s came with the repository %s. These commands would run:", printable(file), printable(repo))
		for _, run := range commands {
			a.out.line("  %s", plain.Visible(run))
		}
		a.out.text("Run them? [y/N] ")
		answer, _ := bufio.NewReader(a.stdin).ReadString('\n') // no answer means no
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
			_, err := env.Agreed(ctx, c, repo, commands, true)
			return true, err
		}
	} else {
		a.out.note("the commands of %s are not run, for it came with the repository %s:", printable(file), printable(repo))
		for _, run := range commands {
			a.out.note("  %s", plain.Visible(run))
		}
	}
	return false, team.Errorf(team.CodeDenied, "the %d commands of %s need your consent", len(commands), file).
		WithReason(team.ReasonConsent).WithHint("when you have read them: " + again + " --agree")
}

// repositoryOf returns the top directory of the repository that contains a file, "" if there is
// none.
func repositoryOf(file string) (string, error) {
	real, err := realPath(file)
	if err != nil {
		return "", err
	}
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		if is, err := isRepository(dir); err != nil {
			return "", team.Errorf(team.CodeUnavailable, "look for the repository of %s: %w", file, err)
		} else if is {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}

// isRepository reports whether a directory is the top of a repository. Like git, it ignores an
// empty .git directory, which agents' sandboxes leave in /tmp.
func isRepository(dir string) (bool, error) {
	path := filepath.Join(dir, ".git")
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !fi.IsDir() {
		return err == nil, err
	}
	es, err := os.ReadDir(path)
	return len(es) > 0, err
}
