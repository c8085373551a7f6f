package control

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"
)

// profilesPath is where profiles are served.
const profilesPath = "/debug/pprof/"

// serveProfile serves the profiles of package runtime as net/http/pprof does, for go tool pprof. The init of
// that package would run in every command.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	number := func(key string, otherwise int) int {
		if n, err := strconv.Atoi(r.FormValue(key)); err == nil && n > 0 {
			return n
		}
		return otherwise
	}
	// during runs what records until its end.
	during := func(start func(io.Writer) error, stop func(), seconds int) {
		w.Header().Set("Content-Type", "application/octet-stream")
		if err := start(w); err != nil { // another one is recording
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer stop()
		select {
		case <-time.After(time.Duration(number("seconds", seconds)) * time.Second):
		case <-r.Context().Done():
		}
	}
	name := strings.TrimPrefix(r.URL.Path, profilesPath)
	switch p := pprof.Lookup(name); {
	case name == "":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintln(w, "profile\ntrace")
		for _, p := range pprof.Profiles() {
			_, _ = fmt.Fprintln(w, p.Name())
		}
	case name == "profile":
		during(pprof.StartCPUProfile, pprof.StopCPUProfile, 30)
	case name == "trace":
		during(trace.Start, trace.Stop, 1)
	case p == nil:
		http.Error(w, "no profile "+strconv.Quote(name), http.StatusNotFound)
	default:
		if name == "heap" && number("gc", 0) > 0 {
			runtime.GC()
		}
		debug := number("debug", 0)
		if w.Header().Set("Content-Type", "application/octet-stream"); debug > 0 {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		_ = p.WriteTo(w, debug) // the client has gone
	}
}
