package mail

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/team"
)

// LeadReader finds the requests that other programs have written into the lead's mailbox:
// permission and plan requests, in the shapes of their protocol. It reads what has come since
// the last reader of any process; how far that was is noted in a file.
type LeadReader struct {
	Mailer Mailer

	tail  *inbox.Tail
	noted inbox.TailMark // in the file
	saved int64          // bytes read when that was noted
	over  bool           // more was refused than the tail remembers: it is not noted
}

// leadNoteBytes is how many bytes of the lead's mailbox a permanent reader reads before it records
// its position: at most that much is read again by others.
const leadNoteBytes = 256 << 10

// leadNote is that file. It is about one ledger: a request that another ledger does not have,
// or an older copy that was restored, is found again.
type leadNote struct {
	Ledger string         `json:"ledger"`
	Event  int64          `json:"event"` // the newest at that time
	Box    inbox.TailMark `json:"mailbox"`
}

// Taken is the outcome of a request.
type Taken int

const (
	Done    Taken = iota
	Refused       // the next Read offers it again while it is unread
	Failed        // it may succeed next time: the next Read starts again
)

// Read calls take with each new request, and with each that take has refused before.
func (r *LeadReader) Read(ctx context.Context, take func(inbox.Entry, inbox.Frame) Taken) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	entries, err := r.tail.Unread(ctx)
	if damaged(err) {
		return nil // repaired: the supervisor puts back what it lacks
	}
	refused, anew := map[string]bool{}, err != nil
	for _, e := range entries {
		if !mayAsk(e.Text) {
			continue
		}
		if f, ok := e.Frame(); ok && (f.Kind() == team.KindPermissionRequest || f.Kind() == team.KindPlanApprovalRequest) {
			taken := take(e, f)
			refused[e.Key()], anew = taken != Done, anew || taken == Failed
		}
	}
	r.over = !r.tail.Keep(func(e inbox.Entry) bool { return refused[e.Key()] })
	if anew {
		r.tail.Again()
	}
	return err
}

// mayAsk reports whether a text contains the name of a request. Most mail does not, and to
// parse it costs more than to search it. A name that is written with escapes counts.
func mayAsk(text string) bool {
	return strings.Contains(text, string(team.KindPermissionRequest)) || strings.Contains(text, string(team.KindPlanApprovalRequest)) ||
		strings.Contains(text, `\u`)
}

// open begins where the last process ended, or with everything unread.
func (r *LeadReader) open(ctx context.Context) error {
	if r.tail != nil {
		return nil
	}
	box, err := r.Mailer.Box(team.LeadName)
	if err != nil {
		return err
	}
	r.noted = r.note(ctx)
	r.tail = box.Tail(r.noted)
	return nil
}

func (r *LeadReader) note(ctx context.Context) inbox.TailMark {
	var n leadNote
	data, err := os.ReadFile(r.Mailer.Layout.LeadAsked())
	if err != nil || json.Unmarshal(data, &n) != nil || n.Ledger == "" || n.Ledger != r.ledgerFile() {
		return inbox.TailMark{}
	}
	if last, err := r.Mailer.Ledger.LastEvent(context.WithoutCancel(ctx)); err != nil || last < n.Event {
		return inbox.TailMark{}
	}
	return n.Box
}

// Note writes down how far the mailbox was read. Where that cannot be written, the next
// process reads more.
func (r *LeadReader) Note(ctx context.Context) {
	if r.tail == nil {
		return
	}
	n := leadNote{Ledger: r.ledgerFile(), Box: r.tail.Mark()}
	if r.over || n.Ledger == "" || n.Box.Ino == 0 || reflect.DeepEqual(n.Box, r.noted) {
		return
	}
	var err error
	if n.Event, err = r.Mailer.Ledger.LastEvent(ctx); err != nil {
		return
	}
	data, err := json.Marshal(n)
	if err == nil && atomicfile.Write(r.Mailer.Layout.LeadAsked(), data, 0o600, false) == nil {
		r.noted, r.saved = n.Box, r.tail.BytesRead()
	}
}

// NoteSeldom is Note for a reader that stays: it writes only after a while.
func (r *LeadReader) NoteSeldom(ctx context.Context) {
	if r.tail != nil && r.tail.BytesRead()-r.saved >= leadNoteBytes {
		r.Note(ctx)
	}
}

// ledgerFile names the ledger file that a note is about.
func (r *LeadReader) ledgerFile() string {
	fi, err := os.Stat(r.Mailer.Layout.Ledger())
	if err != nil {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(uint64(st.Dev), 16) + ":" + strconv.FormatUint(st.Ino, 16) // the types differ between systems
}
