package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"time"
)

// file is a file of an archive.
type file struct {
	name    string
	content []byte
	mode    fs.FileMode
}

// pack returns an archive whose files are in a folder of its name, as users of the system expect it: zip on Windows, and tar.gz
// on others. All files have the same time and owner, so that the same files give the same bytes.
func pack(system, name string, at time.Time, files []file) (archive, error) {
	var out bytes.Buffer
	if system == "windows" {
		err := packZip(&out, name, at, files)
		return archive{name + ".zip", out.Bytes()}, err
	}
	err := packTar(&out, name, at, files)
	return archive{name + ".tar.gz", out.Bytes()}, err
}

func packZip(out *bytes.Buffer, name string, at time.Time, files []file) error {
	w := zip.NewWriter(out)
	for _, f := range files {
		header := &zip.FileHeader{Name: name + "/" + f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		into, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := into.Write(f.content); err != nil {
			return err
		}
	}
	return w.Close()
}

func packTar(out *bytes.Buffer, name string, at time.Time, files []file) error {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(compressed)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: name + "/" + f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: at, Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return compressed.Close()
}
