package control

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProfiles(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	zipped := []byte{0x1f, 0x8b}
	for _, c := range []struct {
		path   string
		status int
		begins []byte
	}{
		{"", http.StatusOK, []byte("profile\ntrace\nallocs\n")},
		{"goroutine?debug=2", http.StatusOK, []byte("goroutine ")},
		{"goroutine?debug=1", http.StatusOK, []byte("goroutine profile: total ")},
		{"heap?gc=1", http.StatusOK, zipped},
		{"profile?seconds=300", http.StatusOK, zipped},
		{"trace?seconds=300", http.StatusOK, []byte("go 1.")},
		{"nothing", http.StatusNotFound, []byte(`no profile "nothing"`)},
	} {
		w := httptest.NewRecorder()
		serveProfile(w, httptest.NewRequestWithContext(ended, http.MethodGet, profilesPath+c.path, nil))
		if w.Code != c.status || !bytes.HasPrefix(w.Body.Bytes(), c.begins) {
			t.Errorf("%s: %d, %.40q", c.path, w.Code, w.Body)
		}
		text := strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain")
		if want := !strings.Contains(c.path, "seconds") && !strings.Contains(c.path, "gc"); text != want {
			t.Errorf("%s: it is %s", c.path, w.Header().Get("Content-Type"))
		}
	}
}
