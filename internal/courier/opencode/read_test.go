package opencode

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// TestReadsBackToWhatIsOpen checks that a session of 300 messages is read as a whole once, in pages,
// and then from its end to the message in question.
func TestReadsBackToWhatIsOpen(t *testing.T) {
	t.Parallel()
	r, _ := openCodeRig(t)
	var session []any
	of := func(stamp string) { // a person's message
		session = append(session, map[string]any{"info": map[string]any{"id": "msg_" + stamp + "001AbCdEfGhIjKlMn", "role": "user"}, "parts": []any{}})
	}
	for i := range 180 {
		of(fmt.Sprintf("1fddbd09a%03x", i))
	}
	session = append(session, kept(map[string]string{"type": "text", "text": "hello"})...)
	for i := range 119 {
		of(fmt.Sprintf("1fddbd09c%03x", i))
	}
	var (
		mu   sync.Mutex
		read []string
	)
	list := func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		read = append(read, q.URL.RawQuery)
		mu.Unlock()
		page := session
		if n, err := strconv.Atoi(q.FormValue("before")); err == nil {
			page = page[:n]
		}
		if n, err := strconv.Atoi(q.FormValue("limit")); err == nil && n < len(page) {
			w.Header().Set(cursorHeader, strconv.Itoa(len(page)-n))
			page = page[len(page)-n:]
		}
		answers(t, page)(w, q)
	}
	begun := make(chan struct{}, takeUpTries)
	begin := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
		begun <- struct{}{}
	}
	keptServer{list, begin, nil, make(chan struct{})}.start(t, r)
	r.open(t)
	<-begun // or the test times out
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(read, " "); got != "limit=100 before=200&limit=100 before=100&limit=100 limit=100 before=200&limit=100" {
		t.Errorf("read %q", got)
	}
}

// TestOldest checks how far back a reading has to go.
func TestOldest(t *testing.T) {
	t.Parallel()
	s := &server{seen: map[string]string{}, mail: map[string]letter{}}
	if got := s.oldestOpen(); got != "" {
		t.Errorf("nothing is open: %q", got)
	}
	var ids []string
	for _, mail := range []string{"m1", "m2", "m3"} {
		s.stamp = messageStamp(time.Now(), s.stamp)
		ids = append(ids, "msg_"+s.stamp+messageHash(mail))
		s.seen[messageHash(mail)] = ids[len(ids)-1]
	}
	again := func(names ...string) (out []team.Mail) {
		for _, n := range names {
			out = append(out, team.Mail{ID: n, Again: true})
		}
		return append(out, team.Mail{ID: "new"})
	}
	if got := s.oldestOf(again("m3", "m2")); got != ids[1] {
		t.Errorf("m2 and m3: %q of %q", got, ids)
	}
	if got := s.oldestOf(again("m3", "of an earlier supervisor")); got != "" {
		t.Errorf("an id that is not known: %q", got)
	}
	s.mail[ids[2]] = letter{}
	if got := s.oldestOpen(); got != ids[2] {
		t.Errorf("m3 has no receipt: %q of %q", got, ids)
	}
	s.given = ids[0]
	if got := s.oldestOpen(); got != slices.Min(ids) {
		t.Errorf("m1 has no answer: %q of %q", got, ids)
	}
	s.answered = ids[0]
	if got := s.oldestOpen(); got != ids[2] {
		t.Errorf("m1 is answered: %q of %q", got, ids)
	}
}
