#!/bin/sh
# Letter error on held-out training data for prior variances of scores: tune.sh PIVOTS. Run by `make tune`.
set -e
for protocol in tune_small tune_large; do
    for kernel in poly3 image; do
        for node in 10 40 160; do
            for edge in 3 10 30; do
                sed "s/\(name: node.*sigma2: \)[0-9.]*/\1$node/; s/\(type: edge.*sigma2: \)[0-9.]*/\1$edge/" $kernel.yaml > build/tune.yaml
                $KCRF train build/$protocol.train.conll -c build/tune.yaml --size "$1" -q -o build/tune.npz
                printf '%s %s node %s edge %s: letter error %% ' $protocol $kernel $node $edge
                $KCRF evaluate -m build/tune.npz build/$protocol.test.conll --json |
                    $PYTHON -c 'import json, sys; print(round(100 * (1 - json.load(sys.stdin)["accuracy"]), 2))'
            done
        done
    done
done
