# An installed kcrf does its work: sh tests/smoke.sh SAMPLE_DATA. Used on wheels, which have no sources beside them.
set -e
kcrf --version
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for kernel in linear poly rbf; do
    kcrf train "$1/pitch_accent.conll" --kernel $kernel --size 100 --sigma2 1 -q -o "$folder/$kernel.npz"
    kcrf tag -m "$folder/$kernel.npz" "$1/pitch_accent.conll" | kcrf evaluate - | grep "^accuracy"
done
