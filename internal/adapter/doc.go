// Package adapter turns a member into what its backend starts: the argument vector and the whole
// environment. There is one file per agent kind and one table of them (agents.go). Everything here
// is a pure function of its input: nothing is executed, and nothing is read but the input. Golden
// files under testdata hold every launch plan, because other programs parse them.
//
// The facts of a member reach an agent twice, so that agents need not know teamctl: as flags, if
// the agent accepts teamctl's flags, and always as environment variables.
//
//	flag                     variable                       set
//	--agent-id name@team     TEAMCTL_AGENT_ID               always
//	--agent-name name        TEAMCTL_AGENT_NAME             always
//	--team-name team         TEAMCTL_TEAM                   always
//	--agent-color c          TEAMCTL_AGENT_COLOR            always
//	--parent-session-id id   TEAMCTL_PARENT_SESSION_ID      always
//	--plan-mode-required     TEAMCTL_PLAN_MODE_REQUIRED=1   on request
//	--agent-type t           TEAMCTL_AGENT_TYPE             on request
//	--permission-mode m      TEAMCTL_PERMISSION_MODE        on request; bypassPermissions
//	                                                        is --dangerously-skip-permissions
//	--model m                TEAMCTL_MODEL                  on request
//
// In addition TEAMCTL_HOME, TEAMCTL_NOTIFY_SOCKET (where an agent reports that it is ready),
// TEAMCTL_RUNTIME_DIR if the base environment has it, and for a foreign command TEAMCTL_PROMPT. The
// shim adds TEAMCTL_GENERATION.
package adapter
