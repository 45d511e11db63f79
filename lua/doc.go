// Package lua holds the calls that change state, and runs them.
//
// A file is one idea: a function, a few that are read together, or a table of functions that
// own one kind of state. Clients call the files of call/. The opening comment of a file names
// what it uses of other files, and it sees nothing else of them. Without names it uses what has
// the name of the other file:
//
//	-- @use store/index
//	-- @use task/finish: finish, cancel_task
//
// Load makes one library of them for FUNCTION LOAD. It contains each file once. Load also
// makes a script for each call, with the files that the call uses. Scripts are for servers
// without Functions, and for servers too full to load a library. Load fails if a file is
// missing, uses itself through others, or has an unknown flag, so a program finds out when
// it starts.
//
// Empty lines and lines that hold only a comment are not sent. The loader does not parse
// Lua, so it refuses long brackets and strings continued with a backslash: a line inside of
// them could look like a comment. Errors still name the file and line that were written.
//
// [Library.Run] runs a call at most once: it returns an error if the reply is lost, and does
// not run the call again. The caller decides whether to repeat it. The calls are written so
// that they can be repeated.
package lua
