// Command planted shows that the tests find bugs: it plants known ones in the Lua, one
// at a time, and runs the story, or the part of the suite, that must find each.
//
//	go run ./internal/planted                         plant all bugs
//	go run ./internal/planted -list                   list them
//	go run ./internal/planted -only "settle without a fence" -v
//	go run ./internal/planted -by stories             does any story find them?
//	go run ./internal/planted -by model               does another part find them?
//
// A bug is an edit of one file of lua/: a text that occurs in it exactly once, and the text
// that replaces it. Each bug names the story that must find it, and only that story runs, on
// a real Redis. If no story can find the bug, it names a part of the suite (parts.go). A bug
// that its own story does not find counts as not found, even if another story would find it.
// The time of a bug runs from the start of the test process to the first failure, and must be
// below 60 s.
//
// The command fails if a bug is not found within that time, or if its text is no longer in the
// file, so the table in bugs*.go cannot go stale. Before it plants anything, it runs all
// stories, and each part that a bug names, on the unchanged Lua: these must pass.
//
// No file of the tree is changed. The test binaries are built once, and linked so that
// package lua reads its files from a folder and not from the embedded files (build.go). If
// the suite does not find a bug, add the story that finds it, then the bug.
package main
