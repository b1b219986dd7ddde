#!/bin/sh
# A council of four open models into one Qwen3 student: the walk of debate_to_student.sh on real hardware.
#
#   recipes/council_to_qwen3.sh 0.6b        one GPU for the student, four for the council
#   recipes/council_to_qwen3.sh 8b          eight GPUs
#
# NEVER RUN HERE: there was no GPU. What it would take on GPUs with 80 GB, estimated:
#   council     7,473 questions x 4 seats x 2 rounds x about 400 tokens = 24 million tokens; four servers at an assumed
#               2,500 tokens a second each: about 0.7 hours on 4 GPUs
#   0.6b        about 15 GB for SFT, 18 GB for DPO, 16 GB for the process reward model; 20 million tokens are about 0.1
#               hours of one GPU (pluribus.training.memory.gpu_hours, an H100 at 30 % of its peak)
#   8b          about 33 GB on each of 8 GPUs for SFT, 35 GB for DPO, 38 GB for the process reward model; 20 million
#               tokens are about 1.2 GPU hours, 0.2 hours on eight
# `pluribus train KIND --config FILE --plan` says it for your own rows before anything is loaded.
#
# Stopped anywhere, the same command goes on: a run asks nothing twice, a training goes on from its last checkpoint.
set -eu

SIZE=${1:-0.6b}
LIMIT=${2:-7473}         # training questions; take 200 for a first look
DIR=outputs/council_to_qwen3
PLURIBUS=${PLURIBUS:-pluribus}
ACCELERATE=${ACCELERATE:-accelerate}
SERVE=${SERVE:-vllm}     # "none": the servers run already
COUNCIL=recipes/council_qwen3.yaml
ROLLOUTS=vllm/Qwen/Qwen2.5-7B-Instruct@http://127.0.0.1:8001/v1

cd "$(dirname "$0")/.."
export PLURIBUS_HOME="$DIR/workspace"
mkdir -p "$DIR"
case $SIZE in 0.6b|8b) ;; *) echo "no student of size '$SIZE'; say 0.6b or 8b" >&2; exit 2 ;; esac

say() { printf '\n== %s\n' "$*" >&2; }
name() { python3 -c 'import json, sys; print(json.load(sys.stdin)["run"])'; }

SERVERS=
serve() { # GPU PORT MODEL
    [ "$SERVE" = none ] && return
    CUDA_VISIBLE_DEVICES=$1 "$SERVE" serve "$3" --port "$2" --max-model-len 8192 > "$DIR/server-$2.log" 2>&1 &
    SERVERS="$SERVERS $!"
}
stop() { for pid in $SERVERS; do kill "$pid" 2>/dev/null || true; done; wait; SERVERS=; }
trap stop EXIT

# --- the council, with a server for each model ----------------------------------------------------------------------
say "servers"
serve 0 8001 Qwen/Qwen2.5-7B-Instruct
serve 1 8002 meta-llama/Llama-3.1-8B-Instruct
serve 2 8003 mistralai/Mistral-7B-Instruct-v0.3
serve 3 8004 google/gemma-2-9b-it
[ "$SERVE" = none ] || for port in 8001 8002 8003 8004; do
    until curl -sf "http://127.0.0.1:$port/health" > /dev/null; do sleep 5; done
done
say "the council debates $LIMIT training questions"
DEBATE=$($PLURIBUS run "$COUNCIL" --split train --limit "$LIMIT" --json | name)

# --- labels: the task's checker marks answers, rollouts mark steps --------------------------------------------------
say "labels"
$PLURIBUS label "$DEBATE"
$PLURIBUS label "$DEBATE" --steps rollouts --rollouts 4 --rollout-model "$ROLLOUTS" --search binary --max-turns 8000
stop

# --- what is learned from -------------------------------------------------------------------------------------------
say "training rows"
$PLURIBUS distil "$DEBATE" --view rsft --per-question 4 --check-against gsm8k --out "$DIR/rsft.jsonl"
$PLURIBUS distil "$DEBATE" --view steps --check-against gsm8k --out "$DIR/steps.jsonl"
$PLURIBUS distil "$DEBATE" --view preferences --check-against gsm8k --out "$DIR/preferences.jsonl"

# --- the student, its preferences, and a process reward model -------------------------------------------------------
train() { # KIND ACCELERATE-CONFIG
    say "$1, Qwen3-$SIZE"
    if [ "$SIZE" = 0.6b ]; then
        $PLURIBUS train "$1" --config "recipes/$1_qwen3_$SIZE.yaml"
    else
        $ACCELERATE launch --config_file "recipes/accelerate/$2.yaml" -m pluribus train "$1" \
            --config "recipes/$1_qwen3_$SIZE.yaml"
    fi
}
train sft fsdp
train dpo zero3
train prm zero2

# --- what it is worth -----------------------------------------------------------------------------------------------
say "evaluation"
BASE=0.6B; [ "$SIZE" = 8b ] && BASE=8B
$PLURIBUS evaluate "local/Qwen/Qwen3-$BASE" "local/$DIR/sft-$SIZE" "local/$DIR/dpo-$SIZE" \
    --task gsm8k --split test --max-tokens 1024 --temperature 0 --out "$DIR/evaluation-$SIZE"
