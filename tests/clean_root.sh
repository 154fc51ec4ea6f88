# A wheel works on a machine without a compiler: sh tests/clean_root.sh PYTHON WHEEL SAMPLE_DATA, from the root of a checkout.
# With root privileges and debootstrap, the machine is a new Debian that has nothing but Python, of the version that the
# wheel is for; otherwise it is an environment of PYTHON in which no compiler is called.
set -e
python=$1 wheel=$2 samples=$3
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
"$python" -m pip download --quiet --only-binary :all: --dest "$room/wheels" "$wheel"
case $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') in
    3.11) suite=bookworm ;;
    3.13) suite=trixie ;;
    *) suite= ;;
esac
if [ -n "$suite" ] && [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null; then
    echo "trial in a new Debian $suite"
    debootstrap --variant=minbase --include=python3-venv "$suite" "$room/root" >"$room/log" || { tail "$room/log"; exit 1; }
    mkdir "$room/root/trial"
    cp -r "$room/wheels" tests/smoke.sh "$room/root/trial/"
    cp -r "$samples" "$room/root/trial/samples"
    chroot "$room/root" sh -ec '
        for compiler in cc gcc clang c99; do ! command -v $compiler; done
        cd trial
        python3 -m venv kcrf
        kcrf/bin/pip install --quiet --no-index --find-links wheels kcrf
        PATH=$PWD/kcrf/bin:$PATH sh smoke.sh samples'
else
    echo "trial in an environment without a compiler (debootstrap, root privileges and Python 3.11 or 3.13 give a new Debian)"
    "$python" -m venv "$room/kcrf"
    CC=false "$room/kcrf/bin/pip" install --quiet --no-index --find-links "$room/wheels" kcrf
    PATH=$room/kcrf/bin:$PATH sh tests/smoke.sh "$samples"
fi
