package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// page TEAM DEED: serves the page, logs in with the printed link, posts the action, in JSON,
// prints the answer and the views of the team, and stops the page.
func cmdPage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: page team deed")
	}
	ts.Check(ts.Exec("env", "-0"))
	path, err := exec.LookPath("teamctl")
	ts.Check(err)
	cmd := exec.Command(path, "web", "--json")
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = strings.Split(strings.TrimRight(ts.ReadFile("stdout"), "\x00"), "\x00")
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer func() {
		ts.Check(cmd.Process.Signal(syscall.SIGINT))
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // ExitCode reports the result
		if got := cmd.ProcessState.ExitCode(); got != 130 && got != 0 {
			ts.Fatalf("the page ended with %v", cmd.ProcessState)
		}
	}()
	text, err := bufio.NewReader(out).ReadString('}')
	ts.Check(err)
	var printed struct{ URL, Login string }
	ts.Check(json.Unmarshal([]byte(text), &printed))

	jar, err := cookiejar.New(nil)
	ts.Check(err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Jar: jar, Transport: transport, Timeout: patience}
	ask := func(method, url, body, csrf string, want int) string {
		req, err := http.NewRequest(method, url, strings.NewReader(body))
		ts.Check(err)
		if method == http.MethodPost {
			req.Header.Set("Origin", printed.URL)
			req.Header.Set("X-Teamctl-Csrf", csrf)
		}
		res, err := client.Do(req)
		ts.Check(err)
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		ts.Check(err)
		if res.StatusCode != want {
			ts.Fatalf("%s %s: %s: %s", method, url, res.Status, data)
		}
		return string(data)
	}
	at := printed.URL + "/t/" + args[0]
	ask(http.MethodGet, at+"/needs", "", "", http.StatusUnauthorized)
	ask(http.MethodGet, printed.Login, "", "", http.StatusOK)
	ask(http.MethodGet, printed.Login, "", "", http.StatusForbidden)
	token := regexp.MustCompile(`data-csrf="([0-9a-f]+)"`).FindStringSubmatch(ask(http.MethodGet, at, "", "", http.StatusOK))
	if len(token) != 2 {
		ts.Fatalf("the page has no token")
	}
	ask(http.MethodPost, at+"/do", args[1], "", http.StatusForbidden)
	fmt.Fprintln(ts.Stdout(), ask(http.MethodPost, at+"/do", args[1], token[1], http.StatusOK))
	for _, view := range []string{"members", "graph", "time", "changes", "usage", "mail", "tasks"} {
		fmt.Fprintln(ts.Stdout(), ask(http.MethodGet, at+"/"+view, "", "", http.StatusOK))
	}
}
