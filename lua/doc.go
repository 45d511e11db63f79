// Package lua holds the calls that change state, and runs them.
//
// Each file defines one function, or one table of functions that own one kind of state.
// It has the name of the file; everything else in the file is private. Clients call the
// files of call/. The opening comment of a file names the files that it uses. It sees no
// others:
//
//	-- @use store/index
//	-- @use task/finish
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
