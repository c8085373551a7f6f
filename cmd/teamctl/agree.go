package main

import (
	"bufio"
	"context"
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
	repo, err := tool.RepositoryOf(file)
	if err != nil || repo == "" || len(texts) == 0 {
		return false, err
	}
	ok, err := env.Agreed(ctx, c, repo, texts, now)
	if err != nil || ok {
		return now, err
	}
	if a.atTerminal() && c.Person {
		if a.consents(file, repo, what, texts) {
			_, err := env.Agreed(ctx, c, repo, texts, true)
			return true, err
		}
	} else {
		not := "run"
		if what != "commands" {
			not = "used"
		}
		a.out.note("the %s of %s are not %s, for it came with the repository %s:", what, printable(file), not, printable(repo))
		for _, text := range texts {
			a.out.note("  %s", plain.Visible(text))
		}
	}
	return false, team.Errorf(team.CodeDenied, "the %s of %s need your consent: %d", what, file, len(texts)).
		WithReason(team.ReasonConsent).WithHint("when you have read them: " + again + " --agree")
}

// consents shows a person the commands of a file, or what else it holds, and asks.
func (a *app) consents(file, repo, what string, texts []string) bool {
	would, do := "run", "Run"
	if what != "commands" {
		would, do = "be used", "Use"
	}
	a.out.line("%s came with the repository %s. These %s would %s:", printable(file), printable(repo), what, would)
	for _, text := range texts {
		a.out.line("  %s", plain.Visible(text))
	}
	a.out.text(do + " them? [y/N] ")
	answer, _ := bufio.NewReader(a.stdin).ReadString('\n') // no answer means no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// absolute resolves a path from the command line; "" stays empty.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", team.Errorf(team.CodeInvalid, "resolve %q: %w", path, err)
	}
	return abs, nil
}
