package fakemodel

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Fault is a fault of one answer. Either Status or How is set.
type Fault struct {
	Status int // instead of an answer
	Header http.Header
	Text   string

	How   How  // with the events of an answer
	After int  // number of events that are sent unchanged
	Bytes int  // number of bytes sent of the next one before the connection breaks
	Whole bool // the answer is one JSON document, although events were asked for

	Stalled func()           // called when a Stall begins
	Sends   func(events int) // called before the first event is sent, with the number of them
}

// How an answer that has begun goes wrong.
type How string

// The ways.
const (
	Reset     How = "reset"     // the connection breaks
	End       How = "end"       // it ends cleanly, too early
	Stall     How = "stall"     // nothing more comes, and it stays open
	Failing   How = "error"     // an event reports that the server is overloaded
	Malformed How = "malformed" // an event is not JSON
	Double    How = "double"    // an event comes twice
	Trickle   How = "trickle"   // nothing goes wrong, but every byte comes alone
	CRLF      How = "crlf"      // nothing goes wrong, but lines end in CR LF
	Noise     How = "noise"     // nothing goes wrong, but there are comments, pings and unknown events
	Forget    How = "forget"    // nothing is said, but the server has left out the beginning of the request
	Long      How = "long"      // nothing goes wrong, but one event is 64 MB long
)

// Break sets a fault function, called before each answer with the recorded request, one at a time;
// it returns nil for no fault.
func (s *Server) Break(f func(Request) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

func (s *Server) faultOf(r Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		return nil
	}
	return s.fault(r)
}

// forgetful is the context, in tokens, of a server that leaves out what is more.
const forgetful = 2048

// longText fills an event of 64 MB.
const longText = 64 << 20

// writeBroken writes events with the fault f. It breaks a connection with net/http's
// ErrAbortHandler panic.
func writeBroken(w http.ResponseWriter, r *http.Request, p protocol, events []event, f *Fault) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := func() { _ = http.NewResponseController(w).Flush() } // the client may have gone
	send := func(text string) {
		if f.How == CRLF {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		if f.How == Trickle {
			for i := range len(text) {
				_, _ = w.Write([]byte{text[i]})
				flush()
			}
			return
		}
		_, _ = w.Write([]byte(text))
		flush()
	}
	if f.Sends != nil {
		f.Sends(len(events))
	}
	for i, e := range events {
		text := e.text()
		if i == f.After {
			switch f.How {
			case Reset:
				send(text[:min(f.Bytes, len(text))])
				panic(http.ErrAbortHandler)
			case End:
				send(text[:min(f.Bytes, len(text))])
				return
			case Stall:
				flush()
				if f.Stalled != nil {
					f.Stalled()
				}
				<-r.Context().Done()
				return
			case Failing:
				send(failing(p))
				return
			case Malformed:
				send("event: " + e.name + "\ndata: {\"type\":\n\n")
			case Double:
				send(text)
			case Noise:
				send(": comment\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\nevent: brand_new\ndata: {\"type\":\"brand_new\",\"x\":[1]}\n\nretry: 10\nid: 7\n\n")
			case Long:
				send("event: brand_new\ndata: {\"type\":\"brand_new\",\"x\":\"" + strings.Repeat("x", longText) + "\"}\n\n")
			case Trickle, CRLF, Forget:
			}
		}
		send(text)
	}
}

// failing is the event of a server that is overloaded.
func failing(p protocol) string {
	b, err := json.Marshal(p.fail(529, "Overloaded"))
	if err != nil {
		return ""
	}
	if p.name() == "chat" {
		return ": PROCESSING\n\ndata: " + string(b) + "\n\n"
	}
	return "event: error\ndata: " + string(b) + "\n\n"
}

// text is an event as it is written.
func (e event) text() string {
	b, err := json.Marshal(e.data)
	if raw, ok := e.data.(string); ok {
		b, err = []byte(raw), nil
	}
	if err != nil {
		return ""
	}
	text := "data: " + string(b) + "\n\n"
	if e.name != "" {
		text = "event: " + e.name + "\n" + text
	}
	return text
}

// wait waits for a step's pause; false when the client has gone.
func wait(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
