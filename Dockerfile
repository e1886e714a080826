# Both programs in one image; the chart's deployments choose by command.
#   docker build -t loadline .

FROM debian:12-slim AS build
WORKDIR /src
COPY scripts/packages.txt scripts/setup.sh scripts/
RUN scripts/setup.sh && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --preset release \
 && cmake --build --preset release --target loadline-webhook loadline-operator \
 && strip build/release/bin/loadline-*
# The packages of the shared libraries that the programs need, found rather than listed.
RUN ldd build/release/bin/loadline-* | awk '$3 ~ /^\// { print $3 }' | sort -u | xargs -n1 readlink -f \
  | sed 's|^/usr||' | xargs -n1 -I{} sh -c 'dpkg -S "*{}" | cut -d: -f1' | sort -u > /runtime-packages.txt

FROM debian:12-slim
COPY --from=build /runtime-packages.txt /tmp/
RUN apt-get update -qq \
 && xargs -a /tmp/runtime-packages.txt apt-get install -qq -y --no-install-recommends \
 && rm -rf /var/lib/apt/lists/* /tmp/runtime-packages.txt
COPY --from=build /src/build/release/bin/loadline-webhook /src/build/release/bin/loadline-operator /usr/bin/
USER 65532:65532
