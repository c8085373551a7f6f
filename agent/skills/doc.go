// Package skills finds texts that people keep for agents: skills, which an agent loads when it
// needs them, and overlays, which are part of its instructions.
//
// A skill is a directory with a SKILL.md: YAML front matter with name and description, followed by
// text (https://agentskills.io/specification). Skills are read from the user's workspace and from
// .agents/skills and .teamctl/skills of the repository; of two with the same name the first
// counts. An unreadable skill is omitted and reported.
//
// Overlays are SOUL.md, TOOLS.md, USER.md and IDENTITY.md of the user's workspace, an agent's own
// before the general ones, and AGENTS.md of the repository, from its root down to the agent's
// working directory; CLAUDE.md if there is no AGENTS.md.
package skills
