// Package adapter turns a member into what its backend starts: the argument
// vector and the whole environment. There is one file per kind of agent and one
// table of them (agents.go). Everything here is a pure function of its input:
// nothing is executed, and nothing is read but the input; golden files under
// testdata hold every launch plan, because other programs parse them.
//
// The facts of a member reach an agent twice, so that no agent has to know
// teamctl: as flags, where the agent is ours to give flags to, and as
// environment variables always.
//
//	flag                     variable                       set
//	--agent-id name@team     TEAMCTL_AGENT_ID               always
//	--agent-name name        TEAMCTL_AGENT_NAME             always
//	--team-name team         TEAMCTL_TEAM                   always
//	--agent-color c          TEAMCTL_AGENT_COLOR            always
//	--parent-session-id id   TEAMCTL_PARENT_SESSION_ID      always
//	--plan-mode-required     TEAMCTL_PLAN_MODE_REQUIRED=1   when asked for
//	--agent-type t           TEAMCTL_AGENT_TYPE             when asked for
//	--permission-mode m      TEAMCTL_PERMISSION_MODE        when asked for; bypassPermissions
//	                                                        is --dangerously-skip-permissions
//	--model m                TEAMCTL_MODEL                  when asked for
//
// beside them TEAMCTL_HOME, TEAMCTL_NOTIFY_SOCKET (where an agent says that it
// is ready), TEAMCTL_RUNTIME_DIR where the base environment has it, and for a
// foreign command TEAMCTL_PROMPT. The shim adds TEAMCTL_GENERATION.
package adapter
