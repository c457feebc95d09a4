#!/usr/bin/env bash
# The run behind docs/lab/first-report: methods on realisations of 108 cases, twins among them.
#
#     benchmarks/first_report.sh TWINS OUT
#
# TWINS is the folder that benchmarks/twins.py wrote; nothing is trained here. About 40 minutes on two quiet cores; a
# stopped run continues.
set -euo pipefail
twins=$1 out=$2
# no pair of inputs changes the answer of `length`
trained=$(cd "$twins/rows" && printf '%s\n' *.json | sed 's/\.json$//' | grep -v '^length$' | paste -sd,)
methods=exact,eap,eap-ig-inputs,eap-ig-activations,information-flow,random,weight-norm,downstream
run() { tracr lab run -j 2 --twins "$twins" -o "$out" "$@" || true; }  # rows that are refused are rows too

run --methods $methods --cases "core,$trained" --realisations compiled,softened,superposed --seeds 0-1
run --methods $methods --cases "$trained" --realisations twin --seeds 0-3
run --methods $methods --cases "core,$trained" --realisations decoys,backup,two_programs --seeds 0-1
run --methods acdc --subset acdc=20 --cases "$trained" --realisations compiled,softened,superposed,twin --seeds 0-1
run --methods edge-probing,node-probing --subset edge-probing=8,node-probing=8 --cases "$trained" \
    --realisations compiled,softened,twin --seeds 0-1
tracr lab report "$out" -o "$out/report.html" --csv "$out/tables" --figures "$out/figures"
