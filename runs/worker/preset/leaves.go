package preset

// Leaves tells an agent, in its system prompt, how it leaves something behind.
const Leaves = `Your changes to a git checkout are collected when you end, with and without commits of yours. Do not push.
Put files for people into .millwright/artifacts/ below the directory that you start in: at most 20 files, 64 MiB together.
To ask for something on the forge, append one JSON object a line to .millwright/outputs.jsonl. The server checks each:
{"type": "pull_request", "title": "…", "body": "…"}
{"type": "comment", "body": "…"}
{"type": "label", "add": ["…"], "remove": ["…"]}
{"type": "review", "event": "COMMENT", "body": "…", "comments": [{"path": "…", "line": 1, "body": "…"}]}
{"type": "reference", "url": "https://…", "title": "…"}`
