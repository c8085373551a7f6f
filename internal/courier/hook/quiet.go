package hook

import (
	"context"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// maxQuiet is how much of a transcript a hook counts in the supervisor, whose memory stays.
const maxQuiet = 1 << 20

// Quiet runs a hook in the supervisor if nothing waits: no mail, no request that the event settles,
// no other hook of the member. It records what Run records, and reports that no answer is left to
// write. Otherwise the hook has to run in its own process: then nothing was changed, or all of it by
// what Run changes in the same way.
//
// began is when the hook began. Open and Write of in are not used.
func Quiet(ctx context.Context, in In, t *tool.Team, began time.Time) bool {
	if !adapter.AnswersAtOnce(in.CLI, in.Event) {
		return false
	}
	r := newRun(in)
	name, key, ok := team.ParseAgentID(in.Getenv(team.EnvAgentID))
	if !ok || r.gen == "" || key != t.Layout.Key {
		return false
	}
	r.name, r.key, r.bundle, r.now = name, key, t.Layout.Bundle(name), began
	if !r.readsLittle() {
		return false
	}
	c, err := r.identify(ctx, t)
	if err != nil {
		return false
	}
	if answered, err := r.answered(ctx, t, c); err != nil || len(answered) > 0 {
		return false
	}
	if !r.quiet(ctx, t, c) || ctx.Err() != nil {
		return false
	}
	r.tell(false)
	return true
}

// quiet is give for an agent without mail.
func (r *run) quiet(ctx context.Context, t *tool.Team, c tool.Caller) bool {
	lock, err := r.lock(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = lock.Unlock() }()
	waiting, err := t.Ledger.Waiting(ctx, c.Session)
	if err != nil || len(waiting) > 0 || ctx.Err() != nil {
		return false
	}
	return firstError(r.converse(c.Session), r.turnEnds()) == nil
}

// readsLittle reports whether the part of the transcript that the hook reads is short, and the one
// that the hook's own process would read: that may have another directory and another /tmp.
func (r *run) readsLittle() bool {
	path := r.hook.Transcript
	if path == "" || !adapter.CountsTranscript(r.CLI, r.Event) && !adapter.FailsInTranscript(r.CLI, r.Event) {
		return true
	}
	if !filepath.IsAbs(path) {
		return false
	}
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return false
	}
	counted := r.readCounted()
	if counted.Conversation != r.hook.Conversation || info.Size() < counted.Offset {
		counted.Offset = 0
	}
	return info.Size()-counted.Offset <= maxQuiet
}
