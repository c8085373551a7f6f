package tool

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// PullRequest is a prepared pull request: its text, and the commands that would push the branch
// and open it. None of them has been run.
type PullRequest struct {
	Member   string        `json:"member"`
	Branch   string        `json:"branch"`
	Into     string        `json:"into"`
	Title    string        `json:"title"`
	BodyFile string        `json:"bodyFile"`
	Body     string        `json:"body"`
	Tool     string        `json:"tool,omitempty"` // gh or glab, if installed
	Commands [][]string    `json:"commands"`
	Text     team.PullText `json:"text"`
	Warnings []string      `json:"warnings,omitempty"`
}

// PullRequests prepares the pull requests of members, or of all with commits that the target
// lacks.
func (t *Team) PullRequests(ctx context.Context, c Caller, names []string, into string) ([]PullRequest, error) {
	if err := t.may(ctx, c, OpWorktree); err != nil {
		return nil, err
	}
	look, err := t.Worktrees(ctx, WorktreesIn{Members: names, Into: into})
	if err != nil {
		return nil, err
	}
	list := []PullRequest{}
	for _, w := range look.Worktrees {
		switch {
		case w.Into == "":
			return nil, team.Errorf(team.CodeInvalid, "no branch is checked out in the repository").WithReason(team.ReasonNoTarget).WithHint("name one: --into BRANCH")
		case w.Err != nil:
			return nil, w.Err
		case w.Branch == "" || w.ToTarget == 0:
			if len(names) > 0 {
				return nil, team.Errorf(team.CodeConflict, "%s has no commits that %s lacks", w.Member, w.Into).WithReason(team.ReasonNothingToMerge)
			}
			continue
		}
		r, err := t.repo(ctx, w.Repo)
		if err != nil {
			return nil, err
		}
		pr, err := t.pullRequest(ctx, r, w, w.Into)
		if err != nil {
			return nil, err
		}
		list = append(list, pr)
	}
	return list, nil
}

func (t *Team) pullRequest(ctx context.Context, r *worktree.Repo, w WorktreeInfo, into string) (PullRequest, error) {
	pr := PullRequest{Member: w.Member, Branch: w.Branch, Into: into, Commands: [][]string{}}
	text, err := r.PullText(ctx, w.Branch, "refs/heads/"+into)
	if err != nil {
		return pr, err
	}
	pr.Text = text
	m, err := t.Member(ctx, w.Member)
	if err != nil {
		return pr, err
	}
	tasks, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{Owner: m.SessionKey, Status: team.TaskCompleted})
	if err != nil {
		return pr, err
	}
	pr.Title = title(tasks, text, w.Member)
	pr.Body = body(tasks, text)
	pr.BodyFile = filepath.Join(t.Layout.Dir, "pr", w.Member+".md")
	if err := os.MkdirAll(filepath.Dir(pr.BodyFile), 0o700); err != nil {
		return pr, unwritable(pr.BodyFile, err)
	}
	if err := atomicfile.Write(pr.BodyFile, []byte(pr.Body), 0o600, false); err != nil {
		return pr, unwritable(pr.BodyFile, err)
	}
	if !w.Clean() {
		pr.Warnings = append(pr.Warnings, w.Member+" has work that is not committed")
	}
	if len(w.Conflicts) > 0 {
		pr.Warnings = append(pr.Warnings, "it conflicts with "+into+" in "+services.FileList(w.Conflicts))
	}
	if text.Remote == "" {
		pr.Warnings = append(pr.Warnings, "the repository has no remote")
		return pr, nil
	}
	if !text.Pushed {
		pr.Commands = append(pr.Commands, []string{"git", "-C", r.Root(), "push", "--set-upstream", text.Remote, w.Branch})
	}
	order := []string{"gh", "glab"}
	if strings.Contains(text.URL, "gitlab") {
		order = []string{"glab", "gh"}
	}
	for _, name := range order {
		if _, err := exec.LookPath(name); err == nil {
			pr.Tool = name
			break
		}
	}
	switch pr.Tool {
	case "gh":
		pr.Commands = append(pr.Commands, []string{"gh", "pr", "create", "--base", into, "--head", w.Branch, "--title", pr.Title, "--body-file", pr.BodyFile})
	case "glab":
		pr.Commands = append(pr.Commands, []string{"glab", "mr", "create", "--target-branch", into, "--source-branch", w.Branch, "--title", pr.Title, "--description", pr.Body})
	}
	return pr, nil
}

func title(tasks []ledger.Task, text team.PullText, member string) string {
	switch {
	case len(text.Subjects) == 1:
		return text.Subjects[0]
	case len(tasks) == 1:
		return strings.Join(strings.Fields(tasks[0].Subject), " ")
	case len(tasks) > 1:
		return fmt.Sprintf("%s, and %d more", strings.Join(strings.Fields(tasks[0].Subject), " "), len(tasks)-1)
	}
	return "work of " + member
}

func body(tasks []ledger.Task, text team.PullText) string {
	var b strings.Builder
	if len(tasks) > 0 {
		b.WriteString("## Tasks\n\n")
		for _, k := range tasks {
			fmt.Fprintf(&b, "- %s", strings.Join(strings.Fields(k.Subject), " "))
			if k.Result != nil && k.Result.Summary != "" {
				fmt.Fprintf(&b, ": %s", k.Result.Summary)
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	b.WriteString("## Commits\n\n")
	for _, s := range text.Subjects {
		fmt.Fprintf(&b, "- %s\n", s)
	}
	fmt.Fprintf(&b, "\n## Files\n\n```\n%s\n```\n", strings.TrimRight(text.Stat, "\n"))
	return b.String()
}
