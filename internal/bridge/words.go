package bridge

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// words converts a native entry; ok is false for an answer to an approval request, which mail
// cannot give.
func (p *pass) words(e inbox.Entry) (n ledger.NewMessage, ok bool) {
	n = ledger.NewMessage{Kind: team.KindMessage, Text: string(e.RawText())}
	f, is := e.Frame()
	switch f := f.(type) {
	case inbox.PermissionResponse, inbox.PlanApprovalResponse:
		return n, false
	case inbox.TaskAssignment:
		if r, known := p.there(ledger.MirrorTask, f.TaskID); known {
			f.TaskID = r.Here
			if text, err := inbox.Encode(f); err == nil {
				n.Kind, n.Text = team.KindTaskAssignment, text
				break
			}
		}
		n.Text = inbox.Describe(f)
	default:
		if is {
			n.Text = inbox.Describe(f)
		}
	}
	n.Summary = inbox.Summary(e.Summary, n.Text)
	return n, true
}

// wordsThere converts a message for the native side. ok is false for messages that are not
// mirrored: approval requests, which are answered here, and their answers.
func (p *pass) wordsThere(m ledger.Message) (text string, ok bool) {
	switch m.Kind {
	case team.KindPermissionRequest, team.KindPermissionResponse, team.KindPlanApprovalRequest, team.KindPlanApprovalResponse, team.KindShutdownRequest:
		return "", false
	case team.KindTaskCompleted:
		if p.fromThere(m.From) { // its own program has notified the native lead
			return "", false
		}
		if f, is := inbox.Parse(m.Text); is {
			return p.frameThere(m, f), true
		}
	case team.KindIdle, team.KindShutdownApproved, team.KindShutdownRejected, team.KindTaskAssignment, team.KindTeammateTerminated:
		if f, is := inbox.Parse(m.Text); is {
			return p.frameThere(m, f), true
		}
	case team.KindMessage, team.KindBroadcast, team.KindTaskRequest, team.KindTaskResponse, team.KindInfo, team.KindError:
	}
	return harmless(m.Text), true
}

// frameThere returns a protocol message as the native program knows it, with its names and ids;
// frames that it would not understand become text.
func (p *pass) frameThere(m ledger.Message, f inbox.Frame) string {
	var out inbox.Frame
	switch f := f.(type) {
	case inbox.IdleNotification:
		f.From = p.senderThere(m.From)
		if r, known := p.here(ledger.MirrorTask, f.CompletedTaskID); known {
			f.CompletedTaskID = r.There
		} else {
			f.CompletedTaskID = ""
		}
		out = f
	case inbox.ShutdownApproved: // our pane does not belong to the program
		if s, asked := p.here(ledger.MirrorStop, f.RequestID); asked {
			out = inbox.ShutdownApproved{RequestID: s.There, From: p.senderThere(m.From), Timestamp: f.Timestamp}
		}
	case inbox.ShutdownRejected:
		if s, asked := p.here(ledger.MirrorStop, f.RequestID); asked {
			f.RequestID, f.From = s.There, p.senderThere(m.From)
			out = f
		}
	case inbox.TaskAssignment:
		if r, known := p.here(ledger.MirrorTask, f.TaskID); known {
			f.TaskID, f.AssignedBy = r.There, p.senderThere(m.From)
			out = f
		}
	case inbox.TaskCompleted:
		if r, known := p.here(ledger.MirrorTask, f.TaskID); known {
			f.TaskID = r.There
		}
		f.From = p.senderThere(m.From)
		return inbox.Describe(f)
	}
	if out == nil {
		return inbox.Describe(f)
	}
	text, err := inbox.Encode(out)
	if err != nil {
		return inbox.Describe(f)
	}
	return text
}

// harmless keeps the program from interpreting a text as a protocol message: any JSON object may
// be one, for example an answer to a permission request.
func harmless(text string) string {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return "text: " + text
	}
	return text
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func joinErrs(a, b error) error {
	if b == nil {
		return a
	}
	return errors.Join(a, b)
}
