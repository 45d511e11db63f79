// Command planted shows that the tests find bugs: it plants known ones in the Lua, one
// at a time, and runs the part of the suite that must find each.
//
//	go run ./internal/planted                         all of them
//	go run ./internal/planted -list                   what there is
//	go run ./internal/planted -only "no fence in settle" -v
//	go run ./internal/planted -by model               whether another part finds them
//
// A bug is an edit of one file of lua/: a text that occurs in it exactly once, and what
// stands there instead. A bug is found when a test fails, and its time is that from the
// start of the test process to the first failure. It must be below 60 s. The
// command fails if a bug is not found, or later than that, or if its text is no longer
// there, so that the table in bugs*.go cannot rot; and first of all it runs each part
// on the Lua as it is, which must pass.
//
// No file of the tree is touched, and no other code knows of this: the test binaries
// are built once, with an overlay in which package lua reads its scripts from a folder
// that the environment names, and not from what is embedded (build.go). A bug that the
// suite does not find is a hole in the suite: add the story that shows it, then the bug.
package main
