# kcrf-tag and nothing else, some hundred kilobytes. Build the program first; the context is its folder:
#
#   make kcrf-tag
#   buildah build -f examples/Containerfile.tag -t kcrf-tag build
#   podman run --rm -i -v "$PWD:/data:ro" kcrf-tag /data/model.kcrf < new.conll > tagged.conll
#
# docker and podman build it in the same way. An image with a model: FROM kcrf-tag, COPY model.kcrf /, CMD ["/model.kcrf"].
FROM scratch
COPY kcrf-tag /kcrf-tag
USER 65534:65534
ENTRYPOINT ["/kcrf-tag"]
