package control

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// gate holds requests until the supervisor has adopted its members. A ping is answered as soon as
// the socket exists, so that a client can distinguish a starting supervisor from a silent one.
type gate struct {
	mux     *http.ServeMux
	ping    http.HandlerFunc
	decided chan struct{}
	why     error // there will be no supervisor
}

func newGate(mux *http.ServeMux, ping http.HandlerFunc) *gate {
	return &gate{mux: mux, ping: ping, decided: make(chan struct{})}
}

// open lets requests through, or answers them with why there will be no supervisor.
func (g *gate) open(why error) {
	g.why = why
	close(g.decided)
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == pingPath {
		g.ping(w, r)
		return
	}
	late := time.NewTimer(startTimeout)
	defer late.Stop()
	err := error(nil)
	select {
	case <-g.decided:
		var coded *team.Error
		if err = g.why; err != nil && !errors.As(err, &coded) { // it was told to leave: the next one may come up
			err = supervisor.ErrStopped
		}
	case <-r.Context().Done():
		return
	case <-late.C:
		err = team.Errorf(team.CodeTimeout, "the supervisor, pid %d, is still starting after %s", os.Getpid(), startTimeout)
	}
	if err == nil {
		g.mux.ServeHTTP(w, r)
		return
	}
	refuse(w, err)
}

// refuse answers with a coded error.
func refuse(w http.ResponseWriter, err error) {
	e := errorOf(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statusOf(e.Code))
	_ = json.NewEncoder(w).Encode(e)
}
