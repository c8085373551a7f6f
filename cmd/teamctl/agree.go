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
	return a.agreeTo(ctx, env, c, file, "commands", commands, now, again)
}

// agreeTo is agree for texts of any kind: what names them.
func (a *app) agreeTo(ctx context.Context, env *tool.Env, c tool.Caller, file, what string, texts []string, now bool, again string) (agreed bool, err error) {
	repo, err := repositoryOf(file)
	if err != nil || repo == "" || len(texts) == 0 {
		return false, err
	}
	would, do, not := "run", "Run", "run"
	if what != "commands" {
		would, do, not = "be used", "Use", "used"
	}
	ok, err := env.Agreed(ctx, c, repo, texts, now)
	if err != nil || ok {
		return now, err
	}
	if a.atTerminal() && c.Person {
		a.out.line("%s came with the repository %s. These %s would %s:", printable(file), printable(repo), what, would)
		for _, text := range texts {
			a.out.line("  %s", plain.Visible(text))
		}
		a.out.text(do + " them? [y/N] ")
		answer, _ := bufio.NewReader(a.stdin).ReadString('\n') // no answer means no
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
			_, err := env.Agreed(ctx, c, repo, texts, true)
			return true, err
		}
	} else {
		a.out.note("the %s of %s are not %s, for it came with the repository %s:", what, printable(file), not, printable(repo))
		for _, text := range texts {
			a.out.note("  %s", plain.Visible(text))
		}
	}
	return false, team.Errorf(team.CodeDenied, "the %d %s of %s need your consent", len(texts), what, file).
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
