package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// busyNotice notifies the sender of a steering message that came too late.
const busyNotice = "Session is busy. Your message was queued with mode `steer-backlog` and will be applied as steering context shortly."

// answerEvidence is the evidence for an answer that begins no turn.
const answerEvidence = "the call that asked has its answer from the ledger"

// maxToken is the maximum length of a task in a resume token, in characters.
const maxToken = 200

// takeMail takes in unread mail while no turn of the member's session is running; during a turn, a
// shutdown request ends the turn and the rest waits for a boundary. stop means that a shutdown was
// approved.
func (s *server) takeMail(ctx context.Context) (stop bool, err error) {
	s.settleOwed(ctx)
	letters, ok := s.letters(ctx)
	if !ok {
		return false, nil
	}
	for _, l := range letters {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if l.done {
			s.handled[l.entry.Key()] = true
			continue
		}
		if !l.known || l.msg.Kind != team.KindShutdownRequest {
			continue
		}
		if l.commands {
			s.endTurns(llm.ErrShutdown)
		}
		stop = s.shutdown(ctx, l)
		s.receipt(ctx, l, evidence)
		s.handled[l.entry.Key()] = true
		if stop {
			break
		}
	}
	if !stop && s.turnOf(s.id.Session) == nil {
		letters = s.untaken(ctx, letters)
		err = s.takeLetters(ctx, letters, nil, nil)
		if team.ReasonOf(err) == team.ReasonBacklogFull { // of a turn that will go on
			for _, l := range letters {
				s.hold(ctx, l, "backlog full")
			}
			err = nil
		}
	}
	s.markRead(ctx)
	return stop, err
}

// untaken returns the letters to be taken in. The answer to a permission request is not: the
// requesting call has waited for it.
func (s *server) untaken(ctx context.Context, letters []letter) []letter {
	for _, l := range letters {
		if !l.known || l.done || s.handled[l.entry.Key()] {
			continue
		}
		aside := ""
		switch {
		case l.msg.Kind == team.KindPermissionResponse:
			aside = answerEvidence
		case s.in.Aside != nil:
			aside = s.in.Aside(ctx, l.msg)
		}
		if aside != "" {
			s.receipt(ctx, l, aside)
			s.handled[l.entry.Key()] = true
		}
	}
	return slices.DeleteFunc(letters, func(l letter) bool { return l.done || s.handled[l.entry.Key()] })
}

// takeLetters takes letters into the session in one commit with their receipts: for the running
// turn, behind the results of its calls, or for a new one.
func (s *server) takeLetters(ctx context.Context, letters []letter, turn *ledger.TurnRef, results []ledger.CallResult) error {
	if len(letters) == 0 {
		return nil
	}
	return s.takeIn(ctx, ledger.TakeIn{Session: s.id.Session, Inputs: s.inputs(letters), Turn: turn, Results: results}, letters)
}

func (s *server) takeIn(ctx context.Context, in ledger.TakeIn, letters []letter) error {
	if s.first {
		in.Inputs = append([]ledger.Input{FirstEntry(s.in.First)}, in.Inputs...)
	}
	if in.Turn == nil && !s.ending {
		in.Claim = s.claim()
	}
	var out ledger.TakenIn
	err := s.write(ctx, "take mail in", func(c context.Context) (err error) {
		out, err = s.in.Sessions.TakeIn(c, in)
		return err
	})
	if err != nil {
		return err
	}
	s.first = false
	s.taken(letters)
	s.due = true
	s.claimed(ctx, in.Claim, out.Turn)
	return nil
}

// FirstEntry returns the first entry of a new session.
func FirstEntry(text string) ledger.Input {
	return ledger.Input{NewEntry: ledger.NewEntry{Kind: ledger.EntryUser, Content: text, Source: "first"}}
}

// taken records that letters are in the transcript.
func (s *server) taken(letters []letter) {
	for _, l := range letters {
		s.handled[l.entry.Key()] = true
		delete(s.kept, l.entry.Key())
		s.out.line("✉ %s from %s", cutKind(l), l.entry.From)
	}
}

func cutKind(l letter) string {
	if l.known {
		return string(l.msg.Kind)
	}
	return "unverified message"
}

// provenance is the origin of an entry.
type provenance struct {
	From    string `json:"from"`
	Message string `json:"message,omitempty"`
}

// inputs are letters as what a session is told, each with its receipt. A long text stands in a
// file, once, however often it is found that the backlog is full.
func (s *server) inputs(letters []letter) []ledger.Input {
	list := make([]ledger.Input, len(letters))
	for i, l := range letters {
		in := ledger.Input{NewEntry: ledger.NewEntry{Kind: ledger.EntryUser, Content: s.in.Hide(render([]letter{l}))}}
		if l.known {
			in.Source, in.Message, in.Recipient = "message:"+l.msg.ID, l.msg.ID, s.id.Name
			in.Provenance = encode(provenance{From: l.msg.From, Message: l.msg.ID})
			facts := map[string]string{"task": cut(oneLine(s.in.Hide(l.msg.Text)), maxToken)}
			if short, name := s.keep(l, in.Content); name != "" {
				in.Content, facts["long"] = short, name
			}
			in.Meta = encode(facts)
		} else {
			in.Source, in.Provenance = "unverified:"+l.entry.Key(), encode(provenance{From: "unverified"})
		}
		list[i] = in
	}
	return list
}

// inFile is a text that stands in a file.
type inFile struct{ short, name string }

// keep is Keep for a letter.
func (s *server) keep(l letter, text string) (short, name string) {
	if s.in.Keep == nil {
		return text, ""
	}
	key := l.entry.Key()
	if k, ok := s.kept[key]; ok {
		return k.short, k.name
	}
	if short, name = s.in.Keep(text); name != "" {
		s.kept[key] = inFile{short, name}
	}
	return short, name
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // strings only: cannot fail
	}
	return b
}

// render formats mail for a conversation.
func render(letters []letter) string {
	entries := make([]inbox.Entry, len(letters))
	known := map[string]letter{}
	for i, l := range letters {
		entries[i] = l.entry
		if l.known {
			entries[i].From, entries[i].Text, entries[i].Summary = l.msg.From, l.msg.Text, l.msg.Summary
			known[entries[i].Key()] = l
		}
	}
	return inbox.Render(entries, inbox.RenderOptions{Facts: func(e inbox.Entry) (inbox.Attributes, bool) {
		l, ok := known[e.Key()]
		if !ok {
			return inbox.Attributes{}, false
		}
		return inbox.Attributes{
			TeammateID: l.msg.From, Kind: l.msg.Kind, Color: e.Color, Summary: l.msg.Summary, RequestID: l.msg.RequestID, MessageID: l.msg.ID,
		}, true
	}})
}

// steers reports whether a letter ends the running turn at its next boundary.
func (l letter) steers() bool {
	return l.commands && l.msg.Kind != team.KindShutdownRequest
}

// fromPerson is who a line comes from that was typed by the person of a session.
const fromPerson = "person"

// PersonLine is a line that a person has typed, as input of a session: it is the person's
// own and not framed as mail is. While a turn runs it steers, as the backlog has it. keep is as in
// ServeIn, nil for lines that are short.
func PersonLine(text string, keep func(text string) (short, name string)) ledger.Input {
	facts := map[string]string{"task": cut(oneLine(text), maxToken)}
	if keep != nil {
		if short, name := keep(text); name != "" {
			text, facts["long"] = short, name
		}
	}
	return ledger.Input{NewEntry: ledger.NewEntry{
		Kind: ledger.EntryUser, Content: text, Source: fromPerson + ":" + team.NewUUID(), Provenance: encode(provenance{From: fromPerson}),
		Meta: encode(facts),
	}}
}

// putOff are the backlog's lines of the person that have come while a turn runs, and the messages that
// came too late to steer a turn which a kill has made go on: they steer it now.
func (s *server) putOff(ctx context.Context) (list []ledger.BacklogItem) {
	all, err := s.in.Sessions.Backlog(ctx, s.id.Session)
	if err != nil {
		return nil // they stay where they are
	}
	for _, b := range all {
		var from provenance
		if b.Kind != ledger.BacklogMessage || json.Unmarshal(b.Provenance, &from) != nil {
			continue
		}
		steers := from.From == fromPerson
		if !steers && b.Message != "" {
			if steers, err = s.mayCommand(ctx, from.From); err != nil {
				s.mailTrouble(ctx, err) // it stays where it is
			}
		}
		if steers {
			list = append(list, b)
		}
	}
	return list
}

// look says what the unread mail means for the turn under way.
func (s *server) look(ctx context.Context) llm.Verdict {
	if len(s.putOff(ctx)) > 0 {
		return llm.Steered
	}
	letters, ok := s.letters(ctx)
	if !ok {
		return llm.GoOn
	}
	for _, l := range s.untaken(ctx, letters) {
		if l.steers() {
			return llm.Steered
		}
	}
	return llm.GoOn
}

// takeAt takes in unread mail at a boundary of the turn: steering messages end it and begin the
// next one, other mail becomes part of it.
func (s *server) takeAt(ctx context.Context, r *running, token llm.Token) (llm.Verdict, error) {
	all, ok := s.letters(ctx)
	if !ok {
		return llm.GoOn, nil
	}
	var steer, rest []letter
	stops := false
	for _, l := range s.untaken(ctx, all) {
		switch {
		case l.known && l.msg.Kind == team.KindShutdownRequest: // left to the loop
			stops = true
		case l.steers():
			steer = append(steer, l)
		default:
			rest = append(rest, l)
		}
	}
	defer s.markRead(ctx)
	ref := r.job.Ref()
	before := s.putOff(ctx)
	if len(steer)+len(before) == 0 {
		if len(rest) == 0 || token.Open {
			return llm.GoOn, nil
		}
		return llm.TookIn, s.takeLetters(ctx, rest, &ref, token.Results)
	}
	in := ledger.TurnSteer{Ref: ref, Results: token.Results, Inputs: s.steering(steer, before), Resume: ledger.BacklogItem{
		Text: resumeText(r.job, token), Source: "resume:" + token.Source, Meta: encode(map[string]string{"task": quoted(token)}),
	}}
	if ctx.Err() == nil && !s.ending && !stops {
		in.Claim = s.claim()
	}
	var out ledger.SteeredTurn
	err := s.write(ctx, "steer a turn", func(c context.Context) (err error) {
		out, err = s.in.Sessions.SteerTurn(c, in)
		return err
	})
	if team.ReasonOf(err) == team.ReasonBacklogFull { // it waits for the end of the turn
		for _, l := range steer {
			s.hold(ctx, l, "backlog full")
		}
		return llm.GoOn, nil
	}
	if err != nil {
		return llm.GoOn, err
	}
	s.taken(steer)
	s.due = true
	s.claimed(ctx, in.Claim, out.Turn)
	return llm.Steered, nil
}

// steering is what ends a turn, in order of arrival: the unread letters, and what the backlog has,
// which leaves it by its source. A message in the backlog was read before.
func (s *server) steering(letters []letter, before []ledger.BacklogItem) []ledger.Input {
	byArrival(letters)
	var out []ledger.Input
	for i, in := range s.inputs(letters) {
		for ; len(before) > 0 && (before[0].Message != "" || before[0].At <= letters[i].msg.At); before = before[1:] {
			out = append(out, backlogInput(before[0]))
		}
		out = append(out, in)
	}
	for _, b := range before {
		out = append(out, backlogInput(b))
	}
	return out
}

func backlogInput(b ledger.BacklogItem) ledger.Input {
	return ledger.Input{NewEntry: ledger.NewEntry{
		Kind: ledger.EntryUser, Content: b.Text, Source: b.Source, Provenance: b.Provenance, Meta: b.Meta,
	}, Message: b.Message, Recipient: b.Recipient}
}

// byArrival puts letters into the order in which they were posted.
func byArrival(letters []letter) {
	slices.SortStableFunc(letters, func(a, b letter) int { return int(a.msg.Seq - b.msg.Seq) })
}

// resumeText returns the line by which a turn is resumed.
func resumeText(j ledger.TurnJob, token llm.Token) string {
	return fmt.Sprintf("resume: %s (turn %d, after %d tool rounds)", quoted(token), j.ID, token.Rounds)
}

// quoted is the beginning of the task of a token.
func quoted(token llm.Token) string { return cut(oneLine(token.Task), maxToken) }

// takeLate adds steering messages to the backlog of a session whose turn has given its last
// answer, and notifies the senders. Other mail begins the next turn.
func (s *server) takeLate(ctx context.Context) error {
	for _, b := range s.putOff(ctx) {
		if b.Message == "" && b.ID > s.told {
			s.told = b.ID
			s.out.line("%s", busyNotice)
		}
	}
	all, ok := s.letters(ctx)
	if !ok {
		return nil
	}
	steer := slices.DeleteFunc(s.untaken(ctx, all), func(l letter) bool { return !l.steers() })
	if len(steer) == 0 {
		return nil
	}
	byArrival(steer)
	err := s.takeLetters(ctx, steer, nil, nil)
	if team.ReasonOf(err) == team.ReasonBacklogFull {
		return nil // it stays unread, and begins a turn of its own
	}
	if err != nil {
		return err
	}
	for _, l := range steer {
		s.post(ctx, "the notice", ledger.NewMessage{
			Kind: team.KindInfo, To: l.msg.From, Hop: l.msg.Hop, IdemKey: "busy:" + l.msg.ID, // without a parent: it is not an answer
			Text: busyNotice, Summary: "queued: the session is busy",
		})
	}
	s.markRead(ctx)
	return nil
}
