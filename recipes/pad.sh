#!/bin/sh
# Process-aware distillation: a council's marked steps become a process reward model, and that the reward of a policy.
#
#   recipes/pad.sh [DIR]        the whole walk on the embedded models, on a CPU, offline
#
#   council debates on training questions -> steps marked -> process reward model -> GRPO with PRMVR -> evaluation
#
# The control is the same training with the checker alone (VR), from the same start, with the same samples. A number from
# here supports no sentence about large models. With real models: recipes/prm_agentark.yaml and recipes/grpo_agentark.yaml.
set -eu

DIR=${1:-out/pad}
PLURIBUS=${PLURIBUS:-pluribus}
TASK=${TASK:-sums}
TRAIN=${TRAIN:-400}        # questions the council debates, for the steps
PROMPTS=${PROMPTS:-2000}   # questions the policies draw from
TEST=${TEST:-500}          # questions everybody is measured on; never trained on
STEPS=${STEPS:-60}         # optimiser steps of each policy
PRM_STEPS=${PRM_STEPS:-200}
POLICY=${POLICY:-zoo/qwen}
COUNCIL=${COUNCIL:-zoo/gemma,zoo/olmo,zoo/phi}
VERIFIER=${VERIFIER:-zoo/phi}   # becomes the process reward model; its tokens need not be the policy's
SAMPLES=${SAMPLES:-16}     # of each prompt
RATE=${RATE:-3e-4}

export PLURIBUS_HOME="$DIR/workspace"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
mkdir -p "$DIR"

say() { printf '\n== %s\n' "$*" >&2; }
name() { python3 -c 'import json, sys; print(json.load(sys.stdin)["run"])'; }

say "the council debates $TRAIN training questions; the task's checker marks every step"
DEBATE=$($PLURIBUS run --task "$TASK" --split train --limit "$TRAIN" --method debate --debate-rounds 1 \
    --agent-models "$COUNCIL" --max-tokens 160 --json | name)
$PLURIBUS label "$DEBATE"
$PLURIBUS label "$DEBATE" --steps checker
$PLURIBUS distil "$DEBATE" --view steps --out "$DIR/steps.jsonl"

say "process reward model"
$PLURIBUS train prm --model "$VERIFIER" --data "$DIR/steps.jsonl" --out "$DIR/prm" --max-steps "$PRM_STEPS" \
    --batch-size 32 --learning-rate 2e-3 --scheduler cosine --save-steps 100 --set prm.contrast=0

policy() {  # NAME, flags of the reward
    arm=$1; shift
    say "policy: $arm"
    $PLURIBUS train grpo --model "$POLICY" --data "$TASK@train" --limit "$PROMPTS" --out "$DIR/$arm" \
        --eval-data "$TASK@dev" --eval-limit 100 --eval-steps 20 --max-steps "$STEPS" --batch-size 64 --accumulation 2 \
        --samples "$SAMPLES" --max-new-tokens 120 --learning-rate "$RATE" --scheduler cosine --warmup-ratio 0.1 \
        --save-steps 20 --logging-steps 5 "$@"
}
policy vr --reward-mode VR
policy prmvr --reward-mode PRMVR --prm "$DIR/prm"

say "evaluation: 8 draws of each at temperature 1"
$PLURIBUS evaluate "$POLICY" "local/$DIR/vr" "local/$DIR/prmvr" --task "$TASK" --split test --limit "$TEST" \
    --samples 8 --temperature 1 --top-p 1 --max-tokens 120 --metrics accuracy,pass@1,pass@8,maj@8 --out "$DIR/evaluation"

say "report: reward, diversity, length and steps of the replies on the way"
$PLURIBUS report "$DIR/vr" "$DIR/prmvr" --out "$DIR/report" --title "Process-aware distillation: $TASK"
printf '\n%s\n' "$DIR/evaluation/table.csv, $DIR/report/report.html" >&2
