package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"text/template"
	"unicode"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/team"
)

// Service is a unit of the user's service manager that keeps a team's supervisor running across
// logins and reboots.
type Service struct {
	Path    string   `json:"path"`
	Text    string   `json:"text"`
	Enable  []string `json:"enable"`  // commands that enable it
	Disable []string `json:"disable"` // commands that disable it
}

// The kill mode keeps the agents running when the supervisor is stopped or restarted: they do not
// belong to its service. The minus sign keeps a member that could not be recovered from ending the
// supervisor of the others. Members are recovered one after the other, within the start timeout.
// While a supervisor started by a command is running, this service fails; it is retried at growing
// intervals without limit.
var systemdUnit = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("systemd").Parse(`[Unit]
Description=teamctl supervisor of team {{.Key}}
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={{.Exe}} supervise --team {{.Key}}
ExecStartPost=-{{.Exe}} recover --team {{.Key}}
TimeoutStartSec=10min
{{- range .Env}}
Environment={{.Unit}}
{{- end}}
KillMode=process
Restart=on-failure
RestartSec=1
RestartSteps=6
RestartMaxDelaySec=60
Delegate=yes
DelegateSubgroup=supervisor

[Install]
WantedBy=default.target
`))
})

var launchdPlist = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("launchd").Parse(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>{{.Label}}</string>
  <key>ProgramArguments</key>
  <array><string>{{.Exe}}</string><string>supervise</string><string>--team</string><string>{{.Key}}</string></array>
  <key>EnvironmentVariables</key>
  <dict>
{{- range .Env}}
    <key>{{.Name}}</key><string>{{.XML}}</string>
{{- end}}
  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>AbandonProcessGroup</key><true/>
</dict>
</plist>
`))
})

// ServiceOf returns the unit of a team for an operating system ("" means this one) without writing
// it. exe is the absolute path of the program.
func ServiceOf(l team.Layout, exe, goos string) (Service, error) {
	if goos == "" {
		goos = runtime.GOOS
	}
	for _, p := range []string{exe, l.Home.Dir} {
		if strings.ContainsAny(p, "\n\"'<>&%\\ ") {
			return Service{}, team.Errorf(team.CodeInvalid, "a service file cannot hold the path %q", p).
				WithHint("use paths without spaces and quotes")
		}
	}
	conf, err := os.UserConfigDir()
	if err != nil {
		return Service{}, team.Errorf(team.CodeUnavailable, "find the configuration directory: %w", err)
	}
	label := "teamctl-" + l.Key
	facts := struct {
		Key, Exe, Label string
		Env             []variable
	}{l.Key, exe, label, serviceEnv(l)}
	var b bytes.Buffer
	if goos == "darwin" {
		home, err := os.UserHomeDir()
		if err != nil {
			return Service{}, team.Errorf(team.CodeUnavailable, "find the home directory: %w", err)
		}
		path := filepath.Join(home, "Library", "LaunchAgents", label+".plist")
		err = launchdPlist().Execute(&b, facts)
		return Service{
			Path: path, Text: b.String(),
			Enable: []string{"launchctl load -w " + path}, Disable: []string{"launchctl unload -w " + path},
		}, err
	}
	err = systemdUnit().Execute(&b, facts)
	return Service{
		Path: filepath.Join(conf, "systemd", "user", label+".service"), Text: b.String(),
		Enable: []string{"systemctl --user daemon-reload", "systemctl --user enable --now " + label,
			"loginctl enable-linger"}, // otherwise it runs only while the user is logged in
		Disable: []string{"systemctl --user disable --now " + label},
	}, err
}

// variable is an environment variable of the unit.
type variable struct{ Name, Value string }

// serviceEnv returns the variables that the supervisor needs and the service manager lacks: the
// location of the team, and the search path of the agents' programs, which are often in the user's
// own directories.
func serviceEnv(l team.Layout) []variable {
	env := []variable{{team.EnvHome, l.Home.Dir}}
	for _, name := range []string{team.EnvRuntime, "PATH"} {
		if v := os.Getenv(name); v != "" && !strings.ContainsFunc(v, unicode.IsControl) {
			env = append(env, variable{name, v})
		}
	}
	return append(env, variable{"TEAMCTL_SUPERVISOR_IDLE", "0"})
}

// Unit returns the variable in systemd's syntax.
func (v variable) Unit() string {
	text := v.Name + "=" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(v.Value)
	if strings.ContainsAny(text, "\\\"' ") {
		return `"` + text + `"`
	}
	return text
}

// XML returns its value in launchd's syntax.
func (v variable) XML() string {
	return template.HTMLEscapeString(v.Value) // its entities are valid in XML
}

// InstallService writes the unit without enabling it. It refuses to replace a different file
// unless replace is set.
func InstallService(s Service, replace bool) error {
	old, err := os.ReadFile(s.Path)
	switch {
	case err == nil && string(old) == s.Text:
		return nil
	case err == nil && !replace:
		return team.Errorf(team.CodeConflict, "%s exists and differs", s.Path).WithReason(team.ReasonServiceExists).
			WithHint("look at it, then add --replace")
	case err != nil && !os.IsNotExist(err):
		return team.Errorf(team.CodeUnavailable, "read %s: %w", s.Path, err)
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o755); err != nil {
		return team.Errorf(team.CodeUnavailable, "make %s: %w", filepath.Dir(s.Path), err)
	}
	if err := atomicfile.Write(s.Path, []byte(s.Text), 0o644, false); err != nil {
		return team.Errorf(team.CodeUnavailable, "write %s: %w", s.Path, err)
	}
	return nil
}
