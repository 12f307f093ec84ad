module liken.sh/gitvolume

go 1.26.0
