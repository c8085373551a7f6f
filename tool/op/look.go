package op

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func lookOps() []Op {
	return []Op{
		with(Op{Name: "ScratchpadGet", Verb: "scratchpad get", ReadOnly: true, Idempotent: true}, scratchpadGet),
		with(Op{Name: "ScratchpadMerge", Verb: "scratchpad merge", Gates: []tool.Operation{tool.OpScratchpad}, Destructive: true}, scratchpadMerge),
		with(Op{Name: "WorktreeStatus", Verb: "worktree ls", ReadOnly: true, Idempotent: true}, worktreeStatus),
		with(Op{Name: "WorktreeDiff", Verb: "worktree diff", ReadOnly: true, Idempotent: true}, worktreeDiff),
		with(Op{Name: "WorktreeMerge", Verb: "merge", Gates: []tool.Operation{tool.OpWorktrees}, Long: true}, worktreeMerge),
		with(Op{Name: "RunShow", Verb: "run show", ReadOnly: true, Idempotent: true}, runShow),
	}
}

// ScratchpadGetIn names the team.
type ScratchpadGetIn struct{ TeamRef }

func scratchpadGet(ctx context.Context, s *Session, in ScratchpadGetIn) (ledger.Scratchpad, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, _ tool.Caller) (ledger.Scratchpad, error) { return t.Scratchpad(ctx) })
}

// ScratchpadMergeIn changes the scratchpad.
type ScratchpadMergeIn struct {
	TeamRef
	Patch           json.RawMessage `json:"patch" jsonschema:"Top-level keys to set. A key is replaced as a whole: nothing is merged deeper."`
	ExpectedVersion *int64          `json:"expected_version,omitempty" jsonschema:"The version that the patch was made from: refused when the document has another one by now."`
}

func scratchpadMerge(ctx context.Context, s *Session, in ScratchpadMergeIn) (ledger.Scratchpad, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (ledger.Scratchpad, error) {
		return t.ScratchpadMerge(ctx, c, in.Patch, in.ExpectedVersion)
	})
}

// WorktreeStatusIn names worktrees by their members.
type WorktreeStatusIn struct {
	TeamRef
	Names []string `json:"names,omitempty" jsonschema:"Members to look at; all that have a worktree if left out."`
	Into  string   `json:"into,omitempty" jsonschema:"Branch that the work is compared with; the one checked out in the repository if left out."`
}

func worktreeStatus(ctx context.Context, s *Session, in WorktreeStatusIn) (tool.WorktreesOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, _ tool.Caller) (tool.WorktreesOut, error) {
		return t.Worktrees(ctx, tool.WorktreesIn{Members: in.Names, Into: in.Into})
	})
}

// WorktreeMergeIn says whose work is merged. A gate is a command, and a command is for
// who may run one: it has none.
type WorktreeMergeIn struct {
	TeamRef
	Names    []string `json:"names,omitempty" jsonschema:"Members whose branches are merged; with ready, all that are idle, clean and have something to merge."`
	Ready    bool     `json:"ready,omitempty" jsonschema:"Of all members that are idle, have committed everything and have something to merge."`
	Into     string   `json:"into,omitempty" jsonschema:"Branch to merge into; the one checked out in the repository if left out."`
	Strategy string   `json:"strategy,omitempty" jsonschema:"merge (the default, a merge commit each), rebase, or squash (one commit each)."`
	DryRun   bool     `json:"dry_run,omitempty" jsonschema:"Say what would be merged, and move nothing."`
}

func worktreeMerge(ctx context.Context, s *Session, in WorktreeMergeIn) (tool.MergeOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (tool.MergeOut, error) {
		out, err := t.Merge(ctx, c, tool.MergeIn{Members: in.Names, Ready: in.Ready, Into: in.Into, Strategy: in.Strategy, DryRun: in.DryRun, Each: func(n team.LaneNote) {
			progress(ctx, 0, len(n.Items), "%s", n.State)
		}})
		if err != nil && len(out.Merges) == 0 {
			return out, err
		}
		return out, nil // each merge says what became of it
	})
}

// WorktreeDiffIn names worktrees by their members.
type WorktreeDiffIn struct {
	TeamRef
	Names []string `json:"names,omitempty" jsonschema:"Members to look at; all that have a worktree if left out."`
	Stat  bool     `json:"stat,omitempty" jsonschema:"Only which files, and how many lines."`
	Since string   `json:"since,omitempty" jsonschema:"Compare with: commit (uncommitted work only), task (since its last task was claimed), review (since you last sent comments on it); since the branch began if left out."`
}

// WorktreeDiffOut has the changes of members.
type WorktreeDiffOut struct {
	Diffs []tool.WorktreeDiff `json:"diffs"`
}

func worktreeDiff(ctx context.Context, s *Session, in WorktreeDiffIn) (WorktreeDiffOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (WorktreeDiffOut, error) {
		list, err := t.WorktreeDiffsSince(ctx, c, in.Names, in.Stat, tool.Since(in.Since))
		if list == nil {
			list = []tool.WorktreeDiff{}
		}
		return WorktreeDiffOut{Diffs: list}, err
	})
}

// RunShowIn names a run.
type RunShowIn struct {
	TeamRef
	Run int64 `json:"run,omitempty" jsonschema:"Number of the run; the current one if left out."`
}

func runShow(ctx context.Context, s *Session, in RunShowIn) (ledger.RunInfo, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, _ tool.Caller) (ledger.RunInfo, error) { return t.Ledger.RunInfo(ctx, in.Run) })
}
