# The image for oc adm must-gather from the archive must-gather-VERSION.tar.gz of a release, without a checkout and without compiling. In the
# folder that the archive unpacks:
#
#   podman build --build-arg BASE_IMAGE=$(oc adm release info --image-for=must-gather) -t registry.example/lowlatency-must-gather:v1 .
#   podman push registry.example/lowlatency-must-gather:v1
#   oc adm must-gather --image=registry.example/lowlatency-must-gather:v1
#
# The base is the must-gather image of your release of OpenShift, which has what oc needs beside the program: bash, df, du, awk, sed, ps, pkill,
# setsid and rsync.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
ARG TARGETARCH
COPY LICENSE /licenses/LICENSE
COPY ${TARGETARCH}/THIRD-PARTY /licenses/THIRD-PARTY
COPY ${TARGETARCH}/kubectl-lowlatency /usr/bin/kubectl-lowlatency
COPY gather /usr/bin/gather
ENTRYPOINT ["/usr/bin/gather"]
