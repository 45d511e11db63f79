// Command planted shows that the tests find bugs: it plants known ones in the Lua, one
// at a time, and runs the story, or the part of the suite, that must find each.
//
//	go run ./internal/tool/planted                         plant all bugs
//	go run ./internal/tool/planted -list                   list them
//	go run ./internal/tool/planted -only "settle without a fence" -v
//	go run ./internal/tool/planted -by stories             does any story find them?
//	go run ./internal/tool/planted -by model               does another part find them?
//
// A bug is a paragraph of a file of testdata/bugs, as here: its name, its file below lua/ and the
// story that must find it, the text to replace after "-", and the text planted in its place after "+".
// The old text must occur in the file exactly once. It may be a part of a line, or several lines, each
// after its own "-". Without a line "+", nothing takes its place. A paragraph that begins with "#" is a comment.
//
//	a repeated fetch takes other tasks
//	in task/claim.lua, found by stories/fetch_repeated
//	-if ask.seq <= newest then
//	+if false then
//
// Only the story that a bug names runs, on a real Redis. If no story can find the bug, it names a part
// of the suite (parts.go). A bug that its own story does not find counts as not found, even if another
// story would find it. The time of a bug runs from the start of the test process to the first failure,
// and must be below 60 s.
//
// The command fails if a bug is not found within that time, or if its text is no longer in the
// file, so the tables cannot go stale. Before it plants anything, it runs all
// stories, and each part that a bug names, on the unchanged Lua: these must pass.
//
// No file of the tree is changed. The test binaries are built once, and linked so that
// package lua reads its files from a folder and not from the embedded files (build.go). If
// the suite does not find a bug, add the story that finds it, then the bug.
//
// # Mutants
//
// Command planted also edits the Lua and the Go where nobody has thought of a bug:
//
//	go run ./internal/tool/planted mutants                 draw 200 of the Lua and 100 of the Go, and try them
//	go run ./internal/tool/planted mutants -new            only those that the table lacks
//	go run ./internal/tool/planted mutants -only 4c47c1c8ed -v
//	go run ./internal/tool/planted mutants -list
//
// A mutant is one edit: a condition negated, a comparison or a logical operator replaced by its neighbour, an integer
// plus one, a call or an assignment to a field left out. A seed draws them, and a larger number draws more. The results
// are merged into testdata/mutants.tsv after each mutant, so the command can be interrupted. A mutant keeps its id when
// its line moves. Rows whose line has changed are dropped.
//
// For the Lua, all stories run, and the model plays 10,000 steps with a fixed seed. A mutant is valid if a reply, key,
// event or message of these steps differs from the unchanged Lua. For the Go, the tests of the package run whose
// coverage reaches the mutant. A mutant that none of these finds is tried with other packages (laterParts), for 60 s
// each. All tests that fail are noted. A failure outside the stories and the model counts if it occurs twice, and not
// without the mutant.
//
// A mutant that nothing finds needs a reason in the last column, written by hand: why it changes nothing that is
// promised, or what it costs. If it breaks a promise, write the test that finds it.
package main
